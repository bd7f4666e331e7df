// SPDX-License-Identifier: Apache-2.0
#include "plugin/tuner/nccl_logger.h"

#include <atomic>
#include <cstdlib>

#include "src/base/log.h"

namespace dynamiccl {
namespace {

std::atomic<ncclDebugLogger_t> g_logger{nullptr};

void WriteToNccl(LogLevel level, std::string_view line) {
  const auto logger = g_logger.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  const auto nccl_level = level <= LogLevel::kWarn   ? NCCL_LOG_WARN
                          : level == LogLevel::kInfo ? NCCL_LOG_INFO
                                                     : NCCL_LOG_TRACE;
  // Like NCCL's own WARN, a warning is shown whatever NCCL_DEBUG_SUBSYS says.
  const auto subsystem = nccl_level == NCCL_LOG_WARN ? NCCL_SUBSYS_ALL : NCCL_SUBSYS_TUNING;
  logger(nccl_level, subsystem, "dynamiccl", 0, "DynamICCL: %.*s", static_cast<int>(line.size()),
         line.data());
}

}  // namespace

void LogThroughNccl(ncclDebugLogger_t logger) {
  const char* level = ::secure_getenv("NCCL_DEBUG");
  if (logger == nullptr || level == nullptr || ParseLogLevel(level, LogLevel::kNone) < LogLevel::kWarn)
    return;
  g_logger.store(logger, std::memory_order_release);
  SetLogSink(WriteToNccl);
}

}  // namespace dynamiccl
