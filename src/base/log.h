// SPDX-License-Identifier: Apache-2.0
// Leveled log of the parts that run inside somebody's job (plugin, hostccl). The programs log with spdlog.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace dynamiccl {

// In NCCL's order: NCCL_DEBUG=INFO shows everything up to kInfo.
enum class LogLevel { kNone = 0, kVersion = 1, kWarn = 2, kInfo = 3, kTrace = 5 };

// Receives one line without newline. Must be thread-safe and must not throw.
using LogSink = void (*)(LogLevel level, std::string_view line);

// Null restores the default sink, which writes "dynamiccl: <line>" to standard error up to the level of
// SetLogLevel.
void SetLogSink(LogSink sink);
void SetLogLevel(LogLevel level);
bool LogEnabled(LogLevel level);
void LogLine(LogLevel level, std::string_view line);

// "none", "version", "warn", "info", "trace" in any case; anything else gives `fallback`.
LogLevel ParseLogLevel(std::string_view name, LogLevel fallback);

template <typename... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(level)) LogLine(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dynamiccl
