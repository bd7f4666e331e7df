// SPDX-License-Identifier: Apache-2.0
// NCCL's debug log: NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE, with NCCL's lines.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "src/nccl_abi/tuner_types.h"

namespace dynamiccl::hostccl {

// The device shown in brackets by lines that this thread writes; hostccl sets it on entry to the API.
void SetLogDevice(int device);

// Reads NCCL_DEBUG and its companions again. Any thread.
void ReloadDebugSettings();

// True when a line of this level and these subsystems is written. Any thread.
bool DebugEnabled(ncclDebugLogLevel level, unsigned long subsystems);

// Writes "<host>:<pid>:<tid> [<device>] NCCL INFO <text>". A WARN is kept for LastWarning() whatever
// NCCL_DEBUG says.
void DebugLine(ncclDebugLogLevel level, unsigned long subsystems, std::string_view text);

// The latest WARN of the process: what ncclGetLastError returns.
std::string LastWarning();

// What tuner plugins are given to log with. `format` is printf's.
void PluginLogger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                  const char* format, ...) __attribute__((format(printf, 5, 6)));

template <typename... Args>
void Info(unsigned long subsystems, fmt::format_string<Args...> format, Args&&... args) {
  if (!DebugEnabled(NCCL_LOG_INFO, subsystems)) return;
  DebugLine(NCCL_LOG_INFO, subsystems, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void Warn(fmt::format_string<Args...> format, Args&&... args) {
  DebugLine(NCCL_LOG_WARN, NCCL_SUBSYS_ALL, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dynamiccl::hostccl
