// SPDX-License-Identifier: Apache-2.0
// NCCL's debug log: the variables NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE, and lines in NCCL's
// form, so that tools which read NCCL's log read hostccl's too.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "src/nccl_abi/tuner_types.h"

namespace dynamiccl::hostccl {

// Sets the device that lines of this thread show in brackets. hostccl calls it on entry to the API.
void SetLogDevice(int device);

// Reads NCCL_DEBUG and the related variables again. Any thread.
void ReloadDebugSettings();

// Returns true if a line of this level and these subsystems is written. Any thread.
bool DebugEnabled(ncclDebugLogLevel level, unsigned long subsystems);

// Writes "<host>:<pid>:<tid> [<device>] NCCL INFO <text>". A WARN is also kept for LastWarning(), whatever
// NCCL_DEBUG says. Any thread.
void DebugLine(ncclDebugLogLevel level, unsigned long subsystems, std::string_view text);

// Returns the latest WARN of the process, which is the result of ncclGetLastError.
std::string LastWarning();

// The logger that is passed to plugins. `format` is a printf format.
void PluginLogger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                  const char* format, ...) __attribute__((format(printf, 5, 6)));

// Formats and writes an INFO line; does nothing if such lines are off.
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
