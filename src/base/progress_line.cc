// SPDX-License-Identifier: Apache-2.0
#include "src/base/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

namespace dynamiccl {
namespace {

// Nanoseconds between two lines, on a terminal and in a file. A line that is overwritten in place may change
// as fast as an eye follows. A log file should stay short, but after five seconds of silence people ask
// whether the program still runs.
constexpr int64_t kTerminalPauseNs = 200'000'000;
constexpr int64_t kLogPauseNs = 5'000'000'000;
// Seconds from which minutes are shown.
constexpr double kShowMinutes = 90;
// ECMA-48 control sequence: go to the first column and erase to the end of the line.
constexpr const char* kEraseLine = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(std::FILE* stream, bool is_terminal, const Clock& clock)
    : stream_(stream), is_terminal_(is_terminal), clock_(clock), shown_ns_(clock.Now()) {}

ProgressLine ProgressLine::OnStandardError() {
  static const SteadyClock clock;
  return {stderr, ::isatty(STDERR_FILENO) == 1, clock};
}

bool ProgressLine::IsDue() const {
  return clock_.Now() - shown_ns_ >= (is_terminal_ ? kTerminalPauseNs : kLogPauseNs);
}

void ProgressLine::Show(const std::string& text) {
  fmt::print(stream_, "{}dynamiccl: {}{}", is_terminal_ ? kEraseLine : "", text, is_terminal_ ? "" : "\n");
  std::fflush(stream_);
  shown_ns_ = clock_.Now();
  visible_ = true;
}

void ProgressLine::Clear() {
  if (!is_terminal_ || !visible_) return;
  std::fputs(kEraseLine, stream_);
  std::fflush(stream_);
  visible_ = false;
}

std::string RoughTime(double seconds) {
  return seconds >= kShowMinutes ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.0f} s", seconds);
}

std::string TimeLeftText(double seconds, double done, double all) {
  if (done <= 0) return "";
  return fmt::format(", about {} left", RoughTime(seconds * (all - done) / done));
}

}  // namespace dynamiccl
