// SPDX-License-Identifier: Apache-2.0
// The sink and the level are two process-wide atomics, so logging takes no lock. See log.h.
#include "src/base/log.h"

#include <strings.h>
#include <unistd.h>

#include <atomic>
#include <string>

namespace dynamiccl {
namespace {

std::atomic<LogSink> g_sink{nullptr};
std::atomic<LogLevel> g_level{LogLevel::kWarn};

void WriteToStandardError(std::string_view line) {
  // One write(2) for each line, so that lines of several ranks on one terminal do not interleave.
  const std::string text = "dynamiccl: " + std::string(line) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void SetLogSink(LogSink sink) {
  g_sink.store(sink, std::memory_order_release);
}
void SetLogLevel(LogLevel level) {
  g_level.store(level, std::memory_order_release);
}

bool LogEnabled(LogLevel level) {
  // A sink that the program set (NCCL's logger) filters by level itself.
  return g_sink.load(std::memory_order_acquire) != nullptr ||
         level <= g_level.load(std::memory_order_acquire);
}

void LogLine(LogLevel level, std::string_view line) {
  if (const LogSink sink = g_sink.load(std::memory_order_acquire)) {
    sink(level, line);
  } else if (LogEnabled(level)) {
    WriteToStandardError(line);
  }
}

LogLevel ParseLogLevel(std::string_view name, LogLevel fallback) {
  struct Row {
    const char* name;
    LogLevel level;
  };
  static constexpr Row kRows[] = {{"none", LogLevel::kNone},
                                  {"version", LogLevel::kVersion},
                                  {"warn", LogLevel::kWarn},
                                  {"info", LogLevel::kInfo},
                                  {"trace", LogLevel::kTrace}};
  for (const Row& row : kRows) {
    if (::strcasecmp(std::string(name).c_str(), row.name) == 0) return row.level;
  }
  return fallback;
}

}  // namespace dynamiccl
