// SPDX-License-Identifier: Apache-2.0
// Leveled log of the parts that run inside somebody's job (plugin, hostccl). The command-line programs log
// with spdlog. All functions may be called from any thread.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace dynamiccl {

// The numbers and their order are NCCL's: NCCL_DEBUG=INFO shows everything up to kInfo.
enum class LogLevel { kNone = 0, kVersion = 1, kWarn = 2, kInfo = 3, kTrace = 5 };

// Receives one line without its newline. A sink must be thread-safe and must not throw.
using LogSink = void (*)(LogLevel level, std::string_view line);

// Sends all further lines to `sink`, which then filters by level itself. Null restores the default sink: it
// writes "dynamiccl: <line>" to standard error, up to the level of SetLogLevel (kWarn at start).
void SetLogSink(LogSink sink);
void SetLogLevel(LogLevel level);
// Returns whether a line of this level would reach the sink. Ask before formatting something expensive.
bool LogEnabled(LogLevel level);
// Logs a finished line. Prefer Log(), which formats only when the level is enabled.
void LogLine(LogLevel level, std::string_view line);

// Reads "none", "version", "warn", "info" or "trace" in any case; returns `fallback` for anything else.
LogLevel ParseLogLevel(std::string_view name, LogLevel fallback);

// Formats with fmt and logs, for example Log(LogLevel::kInfo, "rank {} joined", rank).
template <typename... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(level)) LogLine(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dynamiccl
