// SPDX-License-Identifier: Apache-2.0
// Tests times between readings of the clock, with simulated counters and clocks and on this machine.
#include "src/base/interpolated_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "src/base/clock.h"

namespace dynamiccl {
namespace {

// A machine with a counter of constant rate. Its clock follows the counter and is slewed.
class SlewedMachine {
 public:
  explicit SlewedMachine(uint64_t seed)
      : random_(seed), rate_(0.25 + 0.001 * static_cast<double>(random_() % 2000)) {}

  void Pass(double counts) {
    counter_ += counts;
    ns_ += counts * rate_ * (1 + slew_);
  }
  // Changes the clock's rate like an administrator's daemon does, by at most 500 parts per million.
  void Slew() { slew_ = (static_cast<double>(random_() % 1001) - 500) * 1e-6; }
  uint64_t counter() const { return static_cast<uint64_t>(counter_); }
  double ns() const { return ns_; }
  uint64_t Random(uint64_t below) { return random_() % below; }
  void ReadInto(CounterAnchor& anchor, double counts) {
    const uint64_t before = counter();
    // The clock is read at a random moment between the two readings of the counter.
    const double first = counts * 0.01 * static_cast<double>(random_() % 101);
    Pass(first);
    const auto said = static_cast<int64_t>(ns_);
    Pass(counts - first);
    anchor.Read(before, said, counter());
  }

 private:
  std::mt19937_64 random_;
  const double rate_;
  double slew_ = 0;
  double counter_ = 1e12;
  double ns_ = 5e14;
};

TEST(CounterAnchor, StaysWithTheClockWhateverTheRates) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SlewedMachine machine(seed);
    CounterAnchor anchor;
    int followed = 0;
    for (int i = 0; i < 50'000; ++i) {
      if (machine.Random(5000) == 0) machine.Slew();
      machine.Pass(static_cast<double>(machine.Random(machine.Random(100) == 0 ? 1'000'000 : 2000)));
      const int64_t at = anchor.At(machine.counter());
      if (at < 0) {
        // Sometimes the thread is interrupted within the reading.
        machine.ReadInto(anchor, machine.Random(50) == 0 ? 1e6 : 100);
        continue;
      }
      ++followed;
      // The error is half a reading at each end plus the change by the slew since then.
      ASSERT_LE(std::abs(static_cast<double>(at) - machine.ns()), 300) << "seed " << seed << " call " << i;
    }
    EXPECT_GT(followed, 20'000) << "seed " << seed;
  }
}

TEST(CounterAnchor, SaysNothingBeforeARateIsKnownAndAfterLeaps) {
  CounterAnchor anchor;
  EXPECT_FALSE(anchor.usable());
  EXPECT_EQ(anchor.At(0), -1);
  anchor.Read(1'000'000, 1'000'000, 1'000'050);
  EXPECT_EQ(anchor.At(1'000'100), -1);
  anchor.Read(3'000'000, 3'000'000, 3'000'050);
  ASSERT_TRUE(anchor.usable());
  EXPECT_EQ(anchor.At(3'000'125), 3'000'100);
  EXPECT_EQ(anchor.At(2'000'000), -1) << "the counter went back";
  EXPECT_EQ(anchor.At(3'000'025 + 49'999), 3'049'999);
  EXPECT_EQ(anchor.At(3'000'025 + 50'001), -1) << "too long ago";
  anchor.Read(3'100'000, 3'100'000, 3'100'000 + CounterAnchor::kLongestReading + 1);
  EXPECT_FALSE(anchor.usable()) << "interrupted";
}

TEST(CounterAnchor, AClockThatStandsStillGivesNoRate) {
  CounterAnchor anchor;
  anchor.Read(1'000'000, 1'000'000, 1'000'050);
  anchor.Read(100'000'000'000, 3'000'000, 100'000'000'050);
  EXPECT_FALSE(anchor.usable());
}

TEST(InterpolatedClock, LiesBetweenReadingsOfTheClock) {
  // During a test the clock's rate changes the time by less than this.
  constexpr int64_t kSlack = 1000;
  InterpolatedClock clock;
  int64_t last = 0;
  for (int i = 0; i < 300'000; ++i) {
    const int64_t before = MonotonicNanoseconds();
    const int64_t now = clock.Now();
    ASSERT_GE(now, before - kSlack);
    ASSERT_LE(now, MonotonicNanoseconds() + kSlack);
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace dynamiccl
