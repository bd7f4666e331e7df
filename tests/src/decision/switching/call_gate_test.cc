// SPDX-License-Identifier: Apache-2.0
#include "src/decision/switching/call_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/rounds.h"

namespace dynamiccl {
namespace {

bool Pass(CallGate& gate, uint64_t call) {
  gate.Begin(call);
  return gate.TryPass(call);
}

TEST(CallGate, CallsBeforeTheBoundaryNeverWait) {
  CallGate gate;
  gate.Arm(3, 7);
  for (uint64_t call = 0; call < 3; ++call) {
    EXPECT_TRUE(Pass(gate, call));
    EXPECT_EQ(gate.version(), kDefaultTableVersion);
  }
  EXPECT_FALSE(Pass(gate, 3));
}

TEST(CallGate, VerdictSetsTheVersionFromTheBoundaryOn) {
  CallGate gate;
  gate.Arm(1, 7);
  gate.Commit();
  EXPECT_TRUE(Pass(gate, 0));
  EXPECT_EQ(gate.version(), kDefaultTableVersion);
  EXPECT_FALSE(gate.idle());
  EXPECT_TRUE(Pass(gate, 1));
  EXPECT_EQ(gate.version(), 7u);
  EXPECT_TRUE(gate.idle());
  gate.Arm(2, 8);
  EXPECT_FALSE(Pass(gate, 2));
  gate.Disarm();
  EXPECT_TRUE(gate.TryPass(2));
  EXPECT_EQ(gate.version(), 7u);
}

TEST(CallGate, CallThatTheLibraryRefusedBeginsAgain) {
  CallGate gate;
  gate.Arm(1, 7);
  EXPECT_TRUE(Pass(gate, 0));
  EXPECT_TRUE(Pass(gate, 0));
  EXPECT_FALSE(gate.Reached(1));
  EXPECT_FALSE(Pass(gate, 1));
  EXPECT_TRUE(gate.Reached(1));
}

TEST(CallGate, AbortLeavesWaitersToNccl) {
  CallGate gate;
  gate.Arm(0, 7);
  gate.Commit();
  EXPECT_TRUE(Pass(gate, 0));
  gate.Arm(1, 8);
  EXPECT_FALSE(Pass(gate, 1));
  gate.Release();
  EXPECT_TRUE(gate.TryPass(1));
  EXPECT_EQ(gate.version(), kDefaultTableVersion);
}

// Runs two threads at full speed. The control thread arms a boundary shortly ahead of the calls and commits
// if it was not reached. Then exactly the calls from the boundary on may use the new version. Without the
// total order of "begun" and "armed" some call would be missed, on x86 too.
TEST(CallGate, CommittedBoundaryIsNeverMissedByARunningThread) {
  constexpr uint64_t kCalls = testing::Rounds(2'000'000);
  CallGate gate;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> switches{0};
  std::vector<uint32_t> used(kCalls);
  std::thread issuing([&] {
    for (uint64_t call = 0; call < kCalls; ++call) {
      // On a busy machine the control thread might not run before all calls are done.
      while (switches < call / (kCalls / 16)) std::this_thread::yield();
      gate.Begin(call);
      while (!gate.TryPass(call)) std::this_thread::yield();
      used[call] = gate.version();
    }
    done = true;
  });
  std::vector<uint64_t> boundaries{0};  // By version.
  while (!done) {
    if (!gate.idle()) {
      std::this_thread::yield();  // The boundary of the last commit lies ahead.
      continue;
    }
    const uint64_t boundary = gate.calls() + boundaries.size() % 3;
    gate.Arm(boundary, static_cast<uint32_t>(boundaries.size()));
    if (gate.Reached(boundary)) {
      gate.Disarm();
    } else {
      gate.Commit();
      boundaries.push_back(boundary);
      ++switches;
    }
  }
  issuing.join();
  uint32_t version = 0;
  for (uint64_t call = 0; call < kCalls; ++call) {
    while (version + 1 < boundaries.size() && boundaries[version + 1] <= call) ++version;
    ASSERT_EQ(used[call], version) << "call " << call << " of " << boundaries.size() << " switches";
  }
  EXPECT_GE(boundaries.size(), 16u);
}

}  // namespace
}  // namespace dynamiccl
