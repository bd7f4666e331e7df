// SPDX-License-Identifier: Apache-2.0
// Tests sets of rules that take turns, on streams of calls like those of programs.
#include "src/decision/rule_turns.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <set>

namespace dynamiccl {
namespace {

std::vector<std::shared_ptr<const OverrideRules>> Sets(size_t n) {
  std::vector<std::shared_ptr<const OverrideRules>> sets;
  for (size_t i = 0; i < n; ++i)
    sets.push_back(std::make_shared<OverrideRules>(*OverrideRules::Parse("", "none.csv")));
  return sets;
}

// A program with steps of gathers of two sizes and a reduction.
class Program {
 public:
  Program(size_t sets, uint32_t steps) : sets_(Sets(sets)), turns(sets_, steps) {}
  // Makes a step. Returns the numbers of the sets that its calls used, and the turn.
  std::vector<size_t> Step(int gathers = 4) {
    std::vector<size_t> used;
    for (int i = 0; i < gathers; ++i) used.push_back(Call(Collective::kAllGather, i % 2 == 0 ? 4096 : 65536));
    used.push_back(Call(Collective::kReduceScatter, 1 << 20));
    return used;
  }
  size_t Call(Collective collective, uint64_t bytes) {
    const OverrideRules& rules = turns.RulesAt({collective, bytes}, call_++);
    for (size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i].get() == &rules) return i;
    }
    return SIZE_MAX;
  }

 private:
  std::vector<std::shared_ptr<const OverrideRules>> sets_;
  uint64_t call_ = 0;

 public:
  RuleTurns turns;
};

TEST(SetOfTurn, EveryRoundHasEverySetOnceAndOrdersDiffer) {
  for (const size_t sets : {2u, 3u, 41u, 128u}) {
    std::set<std::vector<size_t>> orders;
    for (uint32_t round = 0; round < 20; ++round) {
      std::vector<size_t> order;
      for (uint32_t i = 0; i < sets; ++i)
        order.push_back(SetOfTurn(1 + round * static_cast<uint32_t>(sets) + i, sets));
      orders.insert(order);
      EXPECT_EQ(std::set(order.begin(), order.end()).size(), sets);
    }
    EXPECT_GE(orders.size(), 2u);
  }
}

TEST(RuleTurns, TheFirstSetIsInUseUntilStepsAreKnown) {
  Program program(3, 2);
  for (int step = 0; step < 10; ++step) {
    for (const size_t set : program.Step()) EXPECT_EQ(set, 0u);
    EXPECT_EQ(program.turns.turn(), 0u);
  }
}

TEST(RuleTurns, ATurnIsSoManyWholeSteps) {
  Program program(3, 4);
  while (program.turns.turn() == 0) program.Step();
  std::map<uint32_t, int> calls_of_turn;
  std::map<size_t, int> calls_of_set;
  for (int call = 0; call < 600; ++call) {
    const size_t set = program.Call(call % 5 == 4 ? Collective::kReduceScatter : Collective::kAllGather,
                                    call % 5 == 4       ? 1 << 20
                                    : call % 5 % 2 == 0 ? 4096
                                                        : 65536);
    ++calls_of_turn[program.turns.turn()];
    ++calls_of_set[set];
    EXPECT_EQ(set, SetOfTurn(program.turns.turn(), 3));
  }
  calls_of_turn.erase(calls_of_turn.begin());
  calls_of_turn.erase(std::prev(calls_of_turn.end()));
  EXPECT_GE(calls_of_turn.size(), 28u);
  for (const auto& [turn, calls] : calls_of_turn) EXPECT_EQ(calls, 4 * 5) << turn;
  for (const auto& [set, calls] : calls_of_set) EXPECT_NEAR(calls, 200, 20) << set;
}

TEST(RuleTurns, OneCallDoesNotChangeItsRules) {
  Program program(2, 2);
  while (program.turns.turn() < 2) program.Step();
  const uint32_t turn = program.turns.turn();
  // All collectives of a group have the same number.
  const OverrideRules* first = nullptr;
  for (int i = 0; i < 1000; ++i) {
    const OverrideRules& rules = program.turns.RulesAt({Collective::kAllReduce, 64}, 1'000'000);
    if (first == nullptr) first = &rules;
    ASSERT_EQ(&rules, first);
  }
  EXPECT_LE(program.turns.turn(), turn + 1);
}

TEST(RuleTurns, StepsOfAnotherLengthBeginNewTurns) {
  Program program(2, 3);
  while (program.turns.turn() < 4) program.Step();
  for (int step = 0; step < 100; ++step) program.Step(8);
  const uint32_t before = program.turns.turn();
  for (int step = 0; step < 30; ++step) program.Step(8);
  EXPECT_EQ(program.turns.turn() - before, 10u);
}

TEST(RuleTurns, AProgramWithoutStepsKeepsTheFirstSet) {
  Program program(2, 3);
  for (uint64_t i = 0; i < 3000; ++i)
    EXPECT_EQ(program.Call(Collective::kAllReduce, 4096 + (i * i % 977) * 4096), 0u);
  EXPECT_EQ(program.turns.turn(), 0u);
}

// All ranks see the same calls, so all must use the same sets.
TEST(RuleTurns, EqualCallsGiveEqualSets) {
  Program one(5, 3), other(5, 3);
  for (int step = 0; step < 300; ++step) {
    const int gathers = step % 50 == 49 ? 6 : 4;  // This step has an evaluation.
    ASSERT_EQ(one.Step(gathers), other.Step(gathers)) << step;
  }
  EXPECT_GT(one.turns.turn(), 10u);
}

}  // namespace
}  // namespace dynamiccl
