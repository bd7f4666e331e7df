// SPDX-License-Identifier: Apache-2.0
// CLOCK_MONOTONIC for a thread that asks for the time every few hundred nanoseconds, as the interposer does
// around each call.
//
// Reading the clock serialises the processor: the reading waits for all earlier instructions and holds up all
// later ones. Reading the processor's cycle counter does neither. So the clock is read once in 50 us,
// and in between the time is
//
//   now = ns of the last reading + (counter now - counter then) * rate
//
// The counter is used only where the kernel keeps its own clocks by it (clocksource "tsc"), which it does
// when the counter runs at one rate and in step on all cores. Elsewhere every call reads the clock.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace dynamiccl {

// Returns the time-stamp counter on x86-64; 0 on other processors, where KernelTrustsCounter() is false.
inline uint64_t ProcessorCounter() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

// Converts counter values to nanoseconds, starting from the latest reading of both. It is pure arithmetic
// without a system call, so tests feed it made-up readings. One thread owns it; it never fails, but says when
// it cannot answer.
class CounterAnchor {
 public:
  // Nanoseconds that the time is extrapolated from one reading at most. The kernel changes the clock's rate
  // by at most 500 parts in a million. That is 25 ns in 50 us, less than one reading takes.
  static constexpr int64_t kLongestNs = 50'000;
  // Least number of nanoseconds between the two readings from which a rate is computed. Each reading is off
  // by some tens of nanoseconds, which is at most 1 part in 10,000 of 1 ms.
  static constexpr int64_t kRateNs = 1'000'000;
  // Counts that a reading of the clock may take. A reading that took longer was interrupted, so its midpoint
  // is not trusted. A usual one takes some hundred nanoseconds.
  static constexpr uint64_t kLongestReading = 2000;

  // False while there is no reading to extrapolate from: the caller must read the clock.
  bool usable() const { return bound_ != 0; }
  // Returns the nanoseconds at `counter`; -1 when `counter` lies outside the range of the extrapolation and
  // the clock must be read.
  int64_t At(uint64_t counter) const {
    // The difference is unsigned. If the counter went back, the difference is huge and lies above the bound.
    const uint64_t passed = counter - counter_;
    // A counter that went back, or too far, is above the bound.
    return passed < bound_ ? ns_ + static_cast<int64_t>(passed * rate_ >> kRateBits) : -1;
  }
  // Records a reading: the clock said `ns` at some moment while the counter was between `before` and `after`.
  void Read(uint64_t before, int64_t ns, uint64_t after);

 private:
  static constexpr int kRateBits = 32;
  void FindRate(uint64_t counter, int64_t ns);

  uint64_t counter_ = 0;
  int64_t ns_ = 0;
  // Nanoseconds per count, with kRateBits fraction bits; 0 while it is not known.
  uint64_t rate_ = 0;
  // Counts after the anchor for which the extrapolation holds; 0 while there is no usable anchor.
  uint64_t bound_ = 0;
  // The reading from which the next rate will be computed; rate_ns_ is 0 while there is none.
  uint64_t rate_counter_ = 0;
  int64_t rate_ns_ = 0;
};

// The clock of one thread, normally a thread_local of that thread; no other thread may use it. Its times
// never go back. They differ from MonotonicNanoseconds() by less than a clock reading takes, except within 2
// ms after the system clock's rate was changed.
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

// Returns whether the kernel keeps its clocks by the processor's counter. Reads one file below /sys; returns
// false if the file cannot be read.
bool KernelTrustsCounter();

}  // namespace dynamiccl
