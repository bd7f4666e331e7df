// SPDX-License-Identifier: Apache-2.0
#include "tools/report/duration_quantiles.h"

#include <gtest/gtest.h>

#include <random>

namespace dynamiccl {
namespace {

Timing Passed(const std::vector<int64_t>& durations) {
  DurationQuantiles quantiles;
  for (const int64_t ns : durations) quantiles.Add(ns);
  EXPECT_EQ(quantiles.needs_second_pass(), durations.size() > DurationQuantiles::kKept);
  quantiles.BeginAgain();
  for (const int64_t ns : durations) quantiles.AddAgain(ns);
  return quantiles.Microseconds();
}

Timing Whole(const std::vector<int64_t>& durations) {
  std::vector<double> microseconds;
  for (const int64_t ns : durations) microseconds.push_back(static_cast<double>(ns) * 1e-3);
  return Summarize(std::move(microseconds));
}

TEST(DurationQuantiles, AreThoseOfAllDurations) {
  std::mt19937_64 random(5);
  for (const size_t count : {size_t{0}, size_t{1}, DurationQuantiles::kKept, DurationQuantiles::kKept + 1,
                             size_t{20'000}, size_t{20'003}}) {
    // The durations have few values, values near each other, or values of every magnitude.
    for (const int spread : {2, 12, 32}) {
      std::vector<int64_t> durations;
      for (size_t i = 0; i < count; ++i)
        durations.push_back(
            static_cast<int64_t>(random() >> (64 - spread) >> (spread < 32 ? 0 : random() % 32)) +
            (spread == 12 ? 1'000'000 : 0));
      const Timing passed = Passed(durations), whole = Whole(durations);
      EXPECT_EQ(passed.median, whole.median) << count << " " << spread;
      EXPECT_EQ(passed.low, whole.low) << count << " " << spread;
      EXPECT_EQ(passed.high, whole.high) << count << " " << spread;
      EXPECT_EQ(passed.repeats, whole.repeats);
    }
  }
}

}  // namespace
}  // namespace dynamiccl
