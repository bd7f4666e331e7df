// SPDX-License-Identifier: Apache-2.0
// Fixed-point arithmetic of the interpolated clock, and the check of the kernel's clock source. See the
// header for the idea.
#include "src/base/interpolated_clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "src/base/clock.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {
namespace {

// Limits of an accepted rate: 1/16 to 16 nanoseconds per count, with 32 fraction bits. Counters run at 1 to 5
// GHz. A rate outside of these limits means that one of the two clocks stood still or was set.
constexpr uint64_t kLowestRate = uint64_t{1} << 28;
constexpr uint64_t kHighestRate = uint64_t{1} << 36;
// A rate is computed over at most this many nanoseconds (1 s), because 1e9 shifted by 32 bits still fits in
// 64 bits.
constexpr int64_t kLongestRateNs = 1'000'000'000;

}  // namespace

void CounterAnchor::FindRate(uint64_t counter, int64_t ns) {
  const int64_t since = ns - rate_ns_;
  const bool first = rate_ns_ == 0 || since < 0 || since > kLongestRateNs || counter <= rate_counter_;
  if (!first && since < kRateNs) return;
  if (!first) {
    const uint64_t found = (static_cast<uint64_t>(since) << kRateBits) / (counter - rate_counter_);
    rate_ = found < kLowestRate || found > kHighestRate ? 0 : found;
  }
  rate_ns_ = ns;
  rate_counter_ = counter;
}

void CounterAnchor::Read(uint64_t before, int64_t ns, uint64_t after) {
  bound_ = 0;
  if (after - before > kLongestReading) return;
  counter_ = before + (after - before) / 2;
  ns_ = ns;
  FindRate(counter_, ns_);
  if (rate_ != 0) bound_ = (static_cast<uint64_t>(kLongestNs) << kRateBits) / rate_;
}

int64_t InterpolatedClock::Read() noexcept {
  static const bool trusted = KernelTrustsCounter();
  if (!trusted) return MonotonicNanoseconds();
  const uint64_t before = ProcessorCounter();
  const int64_t now = MonotonicNanoseconds();
  anchor_.Read(before, now, ProcessorCounter());
  return last_ = std::max(last_, now);
}

bool KernelTrustsCounter() {
#if defined(__x86_64__)
  const UniqueFd fd(
      ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC));
  char name[16] = {};
  const ssize_t bytes = fd.valid() ? ::read(fd.get(), name, sizeof(name)) : 0;
  return bytes > 0 && std::string_view(name, static_cast<size_t>(bytes)) == "tsc\n";
#else
  return false;
#endif
}

}  // namespace dynamiccl
