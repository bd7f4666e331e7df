// SPDX-License-Identifier: Apache-2.0
// CLOCK_MONOTONIC for a thread that asks every few hundred nanoseconds: between two readings of the clock the
// processor's counter says how much time has passed. Reading the clock waits for all instructions before it
// and holds up all behind it; the counter does neither. Only where the kernel itself keeps its clocks by that
// counter, which it does when it runs at one rate and in step on all cores; elsewhere every time is read.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace dynamiccl {

inline uint64_t ProcessorCounter() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

// From counts to nanoseconds, between readings of both.
class CounterAnchor {
 public:
  // The longest that a reading is gone on from: what the clock may be slewed in it, 500 parts in a million,
  // is less than a reading takes.
  static constexpr int64_t kLongestNs = 50'000;
  // Between the readings that a rate is found from: their own errors, some tens of nanoseconds, are 1 part
  // in 10,000 of it.
  static constexpr int64_t kRateNs = 1'000'000;
  // A reading that takes more counts than this, some hundred nanoseconds, was interrupted: not to go on from.
  static constexpr uint64_t kLongestReading = 2000;

  // False: the clock has to be read, whatever the counter says.
  bool usable() const { return bound_ != 0; }
  // -1: the clock has to be read.
  int64_t At(uint64_t counter) const {
    const uint64_t passed = counter - counter_;
    // A counter that went back, or too far, is above the bound.
    return passed < bound_ ? ns_ + static_cast<int64_t>(passed * rate_ >> kRateBits) : -1;
  }
  // The clock said `ns` when the counter was between `before` and `after`.
  void Read(uint64_t before, int64_t ns, uint64_t after);

 private:
  static constexpr int kRateBits = 32;
  void FindRate(uint64_t counter, int64_t ns);

  uint64_t counter_ = 0;
  int64_t ns_ = 0;
  uint64_t rate_ = 0;   // nanoseconds a count, kRateBits fraction bits; 0: not known
  uint64_t bound_ = 0;  // counts; 0: nothing to go on from
  uint64_t rate_counter_ = 0;
  int64_t rate_ns_ = 0;  // of the reading that the next rate is found from; 0: none
};

// Of one thread. Never goes back. Off MonotonicNanoseconds by less than that takes, unless the clock was set
// to another rate less than 2 ms ago.
class InterpolatedClock {
 public:
  int64_t Now() noexcept {
    if (!anchor_.usable()) return Read();
    const int64_t at = anchor_.At(ProcessorCounter());
    return at < last_ ? Read() : last_ = at;
  }

 private:
  int64_t Read() noexcept;

  CounterAnchor anchor_;
  int64_t last_ = 0;
};

// Whether the kernel keeps its clocks by the processor's counter.
bool KernelTrustsCounter();

}  // namespace dynamiccl
