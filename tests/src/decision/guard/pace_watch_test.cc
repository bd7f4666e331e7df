// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/pace_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dynamiccl {
namespace {

// A program that calls four keys in turn. Each key has its own time until the next call, with 5 % of noise.
class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed) {}

  // Makes n calls and returns how many of them the watch asked to time.
  int Calls(int n, double factor) {
    int asked = 0;
    for (int i = 0; i < n; ++i) {
      const uint64_t key = calls_++ % 4;
      watch_.Take(key + 1, now_ns_);
      asked += watch_.wants_times() ? 1 : 0;
      const double noise = std::normal_distribution(0.0, 0.05)(random_);
      now_ns_ += static_cast<int64_t>(1e6 * static_cast<double>(key + 1) * factor * std::exp(noise));
    }
    return asked;
  }

 private:
  PaceWatch watch_;
  std::mt19937_64 random_;
  uint64_t calls_ = 0;
  int64_t now_ns_ = 1;
};

TEST(PaceWatch, AsksForTimesSoonAfterThePaceChanges) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Program program(seed);
    EXPECT_EQ(program.Calls(2000, 1), 0) << seed;
    EXPECT_GE(program.Calls(40, 1.25), 20) << seed;
    EXPECT_EQ(Program(seed).Calls(40, 1.25), 0) << "nothing is known of a new program";
  }
}

TEST(PaceWatch, AFasterPaceIsAChangeToo) {
  Program program(7);
  EXPECT_EQ(program.Calls(2000, 1), 0);
  EXPECT_GE(program.Calls(40, 0.8), 20);
}

// The program changes its pace all the time.
TEST(PaceWatch, AsksForAtMostOnePercentBesideTheFirst) {
  Program program(8);
  std::mt19937_64 random(9);
  int asked = 0;
  constexpr int kTurns = 2000;
  for (int turn = 0; turn < kTurns; ++turn)
    asked += program.Calls(100, std::uniform_real_distribution(0.5, 2.0)(random));
  EXPECT_GT(asked, 512);
  EXPECT_LE(asked, 512 + kTurns * 100 / 100);
}

// Calls that were timed on mere suspicion must not use up the calls that a real change may ask for.
TEST(PaceWatch, NoticesAChangeAfterManyFalseAlarms) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Program program(seed);
    int asked = program.Calls(500, 1);
    for (int turn = 0; turn < 30; ++turn) asked += program.Calls(10, 1.5) + program.Calls(190, 1);
    EXPECT_GE(asked, 192) << seed << ": bursts are alarms";
    program.Calls(500, 1);
    EXPECT_GE(program.Calls(80, 1.5), 20) << seed;
  }
}

TEST(PaceWatch, AClockThatStandsStillIsNoPace) {
  PaceWatch watch;
  for (int i = 0; i < 1000; ++i) {
    watch.Take(1, 5);
    ASSERT_FALSE(watch.wants_times());
  }
}

}  // namespace
}  // namespace dynamiccl
