// SPDX-License-Identifier: Apache-2.0
// Sets up spdlog's default logger.
#include "tools/console_log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>

namespace dynamiccl {

void StartConsoleLog() {
  const auto mode = ColorWelcome(STDERR_FILENO) ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto logger = std::make_shared<spdlog::logger>("dynamiccl",
                                                 std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
  logger->set_pattern("%^%n:%$ %v");
  spdlog::set_default_logger(std::move(logger));
}

bool ColorWelcome(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && ::isatty(descriptor) == 1;
}

}  // namespace dynamiccl
