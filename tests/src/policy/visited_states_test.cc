// SPDX-License-Identifier: Apache-2.0
// Compares remembered transitions with computed ones. The tests use automata with fewer and with more states
// than the memory holds, and networks. Their calls repeat, are disturbed, and continue under another policy.
#include "src/policy/visited_states.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "src/policy/policy_file.h"
#include "src/policy/structure_inference.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

CollectiveCall CallOf(uint64_t kind) {
  CollectiveCall call;
  call.collective = static_cast<Collective>(kind % kTunableCollectives);
  call.bytes = 1000 + kind;
  return call;
}

// An automaton with known transitions. States are numbers, and a call leads to a number mixed from the state
// and the call.
class KnownAutomaton {
 public:
  explicit KnownAutomaton(uint32_t states) : states_(states) {}
  uint32_t Next(uint32_t from, const CollectiveCall& call) const {
    const uint64_t mixed = (uint64_t{from} << 32 | call.bytes) * 0x9e3779b97f4a7c15;
    return static_cast<uint32_t>((mixed >> 20) % states_);
  }
  static StructureState StateOf(uint32_t number) {
    StructureState state;
    // Many states share a bucket, so hidden values alone do not identify them.
    state.network.hidden[3] = static_cast<int16_t>(number / 4);
    state.network.cell[7] = static_cast<int32_t>(number);
    state.recognised.next_role[0] = static_cast<Role>(number % kLabelledRoles);
    state.recognised.phase = static_cast<Phase>(number / 7 % kPhases);
    return state;
  }

 private:
  const uint32_t states_;
};

// Walks `steps` calls of `kinds` kinds. Returns how many transitions were known.
uint64_t Walk(VisitedStates& visited, uint32_t states, uint64_t kinds, uint64_t steps, uint64_t seed) {
  const KnownAutomaton automaton(states);
  std::mt19937_64 random(seed);
  uint32_t at = 0;
  StructureState state;
  uint64_t known = 0;
  for (uint64_t i = 0; i < steps; ++i) {
    const CollectiveCall call = CallOf(random() % kinds);
    const uint32_t before = at;
    at = automaton.Next(at, call);
    if (const RecognisedStructure* answer = visited.Follow(call)) {
      ++known;
      EXPECT_EQ(*answer, KnownAutomaton::StateOf(at).recognised) << "seed " << seed << " call " << i;
      continue;
    }
    visited.Refresh(state);
    if (i > 0) {
      EXPECT_EQ(state, KnownAutomaton::StateOf(before)) << "seed " << seed << " call " << i;
    }
    state = KnownAutomaton::StateOf(at);
    visited.AddTransition(call, state);
    if (testing::Test::HasFailure()) break;
  }
  return known;
}

TEST(VisitedStates, FewStatesAreSoonAllKnown) {
  VisitedStates visited;
  // Each of 100 states has two transitions, which is as many as are kept.
  EXPECT_GE(Walk(visited, 100, 2, 10'000, 1), 9'700u);
}

TEST(VisitedStates, MoreWaysOnThanAreKeptAreComputedAgain) {
  VisitedStates visited;
  const uint64_t known = Walk(visited, 100, 8, 20'000, 2);
  EXPECT_GT(known, 2'000u);
  EXPECT_LT(known, 10'000u);
}

TEST(VisitedStates, MoreStatesThanThereIsRoomForStayRight) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    VisitedStates visited;
    const auto states = static_cast<uint32_t>(VisitedStates::kStates * seed / 2 + 100);
    Walk(visited, states, 1 + seed % 3, 10 * VisitedStates::kStates, seed);
    if (HasFailure()) break;
  }
}

TEST(VisitedStates, WhatNeverRepeatsIsLeftAloneForAWhile) {
  VisitedStates visited;
  StructureState state;
  const auto go = [&](uint64_t calls, uint64_t first) {
    for (uint64_t i = 0; i < calls; ++i) {
      ASSERT_EQ(visited.Follow(CallOf(first + i)), nullptr);
      state.network.cell[0] = static_cast<int32_t>(first + i);
      visited.AddTransition(CallOf(first + i), state);
    }
  };
  // The memory is full without any repetition, so it rests for kPauseCalls calls.
  go(VisitedStates::kStates + 1, 1);
  // During the rest it does not notice equal calls between equal states.
  for (uint64_t i = 1; i < VisitedStates::kPauseCalls; ++i) {
    ASSERT_EQ(visited.Follow(CallOf(0)), nullptr) << i;
    visited.AddTransition(CallOf(0), StructureState{});
  }
  visited.AddTransition(CallOf(0), StructureState{});
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(visited.Follow(CallOf(0)), nullptr);
    visited.AddTransition(CallOf(0), StructureState{});
    if (visited.Follow(CallOf(0)) != nullptr) return;
  }
  FAIL() << "it did not begin again";
}

// The memory of a destroyed communicator is given back while a call still uses it.
TEST(VisitedStates, MemoryThatWasGivenBackHoldsNoWayOn) {
  VisitedStates visited;
  Walk(visited, 1000, 2, 20'000, 1);
  visited.ReleaseMemory();
  for (uint64_t kind = 0; kind < 100; ++kind) EXPECT_EQ(visited.Follow(CallOf(kind)), nullptr);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    visited.AddTransition(CallOf(random() % 3),
                          KnownAutomaton::StateOf(static_cast<uint32_t>(random() % 5000)));
  }
  visited.Forget();
  Walk(visited, 100, 2, 10'000, 2);
}

TEST(VisitedStates, EveryPartOfACallCounts) {
  const CollectiveCall base = CallOf(1);
  std::vector<CollectiveCall> others(6, base);
  others[0].bytes += 1;
  others[1].collective = Collective::kAllReduce;
  others[2].data_type = DataType::kBfloat16;
  others[3].op = ReduceOp::kMax;
  others[4].group_size = 2;
  others[5].n_ranks = 2;
  VisitedStates visited;
  const StructureState state;
  visited.AddTransition(base, state);
  visited.AddTransition(base, state);
  ASSERT_NE(visited.Follow(base), nullptr);
  for (const CollectiveCall& other : others) EXPECT_EQ(visited.Follow(other), nullptr);
  CollectiveCall elsewhere = base;
  elsewhere.communicator = 7;
  elsewhere.call_number = 99;
  elsewhere.index_in_group = 3;
  EXPECT_NE(visited.Follow(elsewhere), nullptr) << "no part of the token";
}

// The agent without the memory of transitions.
class PlainStructure {
 public:
  explicit PlainStructure(const Policy& policy) : network_(policy.tensors) {}

  RecognisedStructure Step(const CollectiveCall& call) {
    const StructureThresholds& thresholds = network_.thresholds();
    const int surprise =
        next_.collective[NextCollectiveClass(call.collective)] + next_.size[NextSizeClass(call.bytes)];
    answer_.surprise = static_cast<uint16_t>(surprise);
    // This runs for every call, because its shape counts as seen whatever the surprise is.
    const bool is_new_shape = IsNewShape(call);
    answer_.changed = surprise >= thresholds.surprise || is_new_shape;
    network_.StepOverCall(tokenizer_.Next(call), state_);
    const StructureWinners winners = network_.Recognise(state_, next_);
    for (size_t c = 0; c < kTunableCollectives; ++c)
      answer_.next_role[c] = static_cast<Role>(winners.lanes[c]);
    answer_.phase = static_cast<Phase>(winners.lanes[kPhaseLane]);
    const int stage = winners.lanes[kStageLane];
    Hold(stage == 0 ? ZeroStage::kUnknown : static_cast<ZeroStage>(stage - 1));
    return answer_;
  }
  const LstmState& state() const { return state_; }

 private:
  // Uses a plain set, since these jobs have no more shapes than the agent has room for.
  bool IsNewShape(const CollectiveCall& call) {
    ++calls_;
    const auto shape = std::tuple(call.collective, call.bytes, call.data_type, call.op);
    if (shapes_.contains(shape)) return false;
    const bool settled = calls_ - last_new_ > static_cast<uint64_t>(network_.thresholds().settled_calls);
    if (settled) shapes_.clear();
    shapes_.insert(shape);
    last_new_ = calls_;
    return settled;
  }
  void Hold(ZeroStage stage) {
    held_ = stage == candidate_ ? held_ + 1 : 1;
    candidate_ = stage;
    if (held_ >= network_.thresholds().stage_hold_calls) answer_.stage = stage;
  }

  StructureNetwork network_;
  CallTokenizer tokenizer_;
  LstmState state_;
  NextCall next_;
  std::set<std::tuple<Collective, uint64_t, DataType, ReduceOp>> shapes_;
  uint64_t calls_ = 0, last_new_ = 0;
  RecognisedStructure answer_;
  ZeroStage candidate_ = ZeroStage::kUnknown;
  int32_t held_ = 0;
};

// Makes a policy that decides on the smallest lead. With small weights it forgets, as trained networks do.
std::unique_ptr<Policy> MakePolicy(uint64_t seed, int divisor) {
  auto policy = test::MakeRandomPolicy(seed);
  PolicyTensors& t = policy->tensors;
  for (auto& row : t.gate_weights) {
    for (int16_t& weight : row) weight = static_cast<int16_t>(weight / divisor);
  }
  t.structure.role_margin = t.structure.phase_margin = t.structure.stage_margin = 1;
  t.structure.stage_hold_calls = 3;
  t.structure.settled_calls = 50;
  t.structure.surprise = 2000 + static_cast<int32_t>(seed % 4) * 500;
  return policy;
}

// A job with steps of `period` calls. One call in `disturbed` is another one.
class Job {
 public:
  Job(uint64_t seed, size_t period, uint64_t disturbed)
      : random_(seed), step_(period), disturbed_(disturbed) {
    for (CollectiveCall& call : step_) call = Random();
  }
  CollectiveCall Next() { return random_() % disturbed_ == 0 ? Random() : step_[at_++ % step_.size()]; }

 private:
  CollectiveCall Random() {
    CollectiveCall call = CallOf(random_() % 20);
    call.bytes <<= random_() % 20;
    call.group_size = static_cast<uint16_t>(1 + random_() % 3);
    return call;
  }

  std::mt19937_64 random_;
  std::vector<CollectiveCall> step_;
  const uint64_t disturbed_;
  size_t at_ = 0;
};

TEST(VisitedStates, AnAgentAnswersAsWithoutMemory) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const auto policy = MakePolicy(seed, seed % 3 == 0 ? 1 : 16), next = MakePolicy(seed + 100, 16);
    auto plain = std::make_unique<PlainStructure>(*policy);
    StructureAgent agent(*policy);
    Job job(seed, 1 + seed * 7 % 40, 300);
    for (int i = 0; i < 12'000; ++i) {
      if (i == 9'000) {
        plain = std::make_unique<PlainStructure>(*next);
        agent.Restart(*next);
        ASSERT_EQ(agent.recognised(), RecognisedStructure{});
      }
      const CollectiveCall call = job.Next();
      const RecognisedStructure expected = plain->Step(call);
      ASSERT_EQ(agent.Step(call), expected) << "seed " << seed << " call " << i;
      ASSERT_EQ(agent.recognised(), expected);
    }
  }
}

TEST(VisitedStates, ANetworkThatForgetsComesBackToTheSameBits) {
  const auto policy = MakePolicy(31, 16);
  PlainStructure plain(*policy);
  Job job(3, 24, ~uint64_t{0});
  LstmState before;
  int equal = 0;
  for (int step = 0; step < 200; ++step) {
    for (int call = 0; call < 24; ++call) plain.Step(job.Next());
    equal = plain.state() == before ? equal + 1 : 0;
    before = plain.state();
  }
  EXPECT_GE(equal, 100) << "steps in a row that ended in the same state";
}

// The step is that of interposer_overhead_bench: AllReduces of 16 sizes.
TEST(VisitedStates, TheStarterPolicyIsBackInAnEarlierStateWithin640Calls) {
  const auto policy = ReadPolicyFile(STARTER_POLICY);
  ASSERT_TRUE(policy) << policy.error().message;
  PlainStructure plain(**policy);
  LstmState earlier;
  const auto step = [&plain] {
    for (int at = 0; at < 16; ++at) {
      CollectiveCall call;
      call.bytes = uint64_t{256} << at;
      plain.Step(call);
    }
  };
  for (int i = 0; i < 640 / 16; ++i) step();
  earlier = plain.state();
  int repeats = 0;
  for (int i = 0; i < 100; ++i) {
    step();
    repeats += plain.state() == earlier ? 1 : 0;
  }
  EXPECT_GE(repeats, 1);
}

}  // namespace
}  // namespace dynamiccl
