// SPDX-License-Identifier: Apache-2.0
// Tests clocks with known skew and drift. Events at the same moment must get the same time.
#include "traces/format/section_clock.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/traces/any_trace.h"
#include "traces/format/matched_calls.h"

namespace dynamiccl {
namespace {

// A machine whose monotonic clock began at `skew_ns` and runs (1 + drift) times as fast as true time.
struct Machine {
  int64_t skew_ns;
  double drift;

  int64_t Monotonic(int64_t true_ns) const {
    return skew_ns + static_cast<int64_t>(static_cast<double>(true_ns) * (1 + drift));
  }
  TraceSection Section(int64_t opened_ns, int64_t closed_ns, int64_t real_error_ns) const {
    TraceSection section;
    section.closed = true;
    section.opened = {Monotonic(opened_ns), opened_ns + real_error_ns};
    section.closed_at = {Monotonic(closed_ns), closed_ns + real_error_ns};
    return section;
  }
};

TEST(SectionClock, TakesSkewAndDriftAway) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const Machine machine{static_cast<int64_t>(random() % 1'000'000'000'000),
                          (static_cast<double>(random() % 801) - 400) * 1e-6};
    const int64_t opened = static_cast<int64_t>(random() % 1'000'000'000);
    const int64_t closed = opened + 1'000'000'000 + static_cast<int64_t>(random() % 3'600'000'000'000);
    const auto real_error = static_cast<int64_t>(random() % 100'000);
    const SectionClock clock(machine.Section(opened, closed, real_error));
    EXPECT_FALSE(clock.was_set());
    const int64_t moment = opened + static_cast<int64_t>(random() % static_cast<uint64_t>(closed - opened));
    // An hour as a double is exact to a nanosecond. The machine's two roundings add two more.
    EXPECT_NEAR(static_cast<double>(clock.RealTime(machine.Monotonic(moment)) - moment - real_error), 0, 3.0);
  }
}

TEST(SectionClock, KilledProcessesKeepTheirDrift) {
  const Machine machine{500, 100e-6};
  TraceSection section = machine.Section(0, 1'000'000'000, 0);
  section.closed = false;
  section.closed_at = {};
  const SectionClock clock(section);
  EXPECT_EQ(clock.RealTime(machine.Monotonic(0)), 0);
  EXPECT_NEAR(static_cast<double>(clock.RealTime(machine.Monotonic(1'000'000'000))), 1e9 + 100e3, 1);
}

// An operator sets the clock back by a minute, which must not count as drift.
TEST(SectionClock, DoesNotTakeAClockThatWasSetForDrift) {
  TraceSection section = Machine{0, 0}.Section(0, 10'000'000'000, 0);
  section.closed_at.realtime_ns -= 60'000'000'000;
  const SectionClock clock(section);
  EXPECT_TRUE(clock.was_set());
  EXPECT_EQ(clock.RealTime(5), 5);
}

TEST(SectionClock, TakesAnyAnchors) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (const TraceSection& section : AnyTrace(seed).sections) {
      const SectionClock clock(section);
      EXPECT_LE(std::abs(clock.drift()), 0.01);
      (void)clock.RealTime(INT64_MIN);
      (void)clock.RealTime(INT64_MAX);
    }
  }
}

TEST(MatchedCalls, AreFoundByCommunicatorAndOrder) {
  std::vector<SectionCalls> sections;
  for (int32_t rank = 0; rank < 3; ++rank) {
    SectionBuilder builder(rank, 3);
    builder.Call(7, Collective::kAllReduce, 64);
    if (rank != 1) builder.Call(8, Collective::kAllGather, 64);
    builder.Call(8, Collective::kSend, 64);
    sections.push_back(CallsOf(builder.section()));
  }
  const auto matched = MatchCalls(sections);
  ASSERT_EQ(matched.size(), 2u);
  EXPECT_EQ(matched[0].call_number, 7u);
  EXPECT_EQ(matched[0].ranks.size(), 3u);
  ASSERT_EQ(matched[1].ranks.size(), 2u);
  EXPECT_EQ(matched[1].ranks[1].section, 2u);
  EXPECT_EQ(matched[1].ranks[1].call, 1u);
}

}  // namespace
}  // namespace dynamiccl
