// SPDX-License-Identifier: Apache-2.0
// NCCL's debug log: the variables NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE, and lines in NCCL's
// form. So tools that read NCCL's log can read hostccl's log too.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "src/nccl_abi/tuner_types.h"

namespace dynamiccl::hostccl {

// Sets the device number that this thread's lines show in brackets. hostccl calls it on entry to the API.
void SetLogDevice(int device);

// Reads NCCL_DEBUG and the related variables again. Any thread may call this.
void ReloadDebugSettings();

// Returns true if a line of this level and these subsystems is written. Any thread may call this.
bool DebugEnabled(ncclDebugLogLevel level, unsigned long subsystems);

// Writes "<host>:<pid>:<tid> [<device>] NCCL INFO <text>". A WARN is also kept for LastWarning(), whatever
// NCCL_DEBUG is. Any thread may call this.
void DebugLine(ncclDebugLogLevel level, unsigned long subsystems, std::string_view text);

// Returns the latest WARN of the process. ncclGetLastError returns the same text.
std::string LastWarning();

// The logging function that plugins receive. `format` is a printf format.
void PluginLogger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                  const char* format, ...) __attribute__((format(printf, 5, 6)));

// Formats and writes an INFO line. It does nothing if such lines are not written.
template <typename... Args>
void Info(unsigned long subsystems, fmt::format_string<Args...> format, Args&&... args) {
  if (!DebugEnabled(NCCL_LOG_INFO, subsystems)) return;
  DebugLine(NCCL_LOG_INFO, subsystems, fmt::format(format, std::forward<Args>(args)...));
}

// Formats and writes a WARN line.
template <typename... Args>
void Warn(fmt::format_string<Args...> format, Args&&... args) {
  DebugLine(NCCL_LOG_WARN, NCCL_SUBSYS_ALL, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dynamiccl::hostccl
