// SPDX-License-Identifier: Apache-2.0
#include "src/decision/rule_turns.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {
namespace {

// The first turn begins only after kStepsBefore steps whose calls repeat, and not before kCallsBefore calls.
// A stretch of equal calls within a step does not last so long.
constexpr uint64_t kStepsBefore = 4;
constexpr uint64_t kCallsBefore = 128;
// After this many consecutive steps with another number of calls, the turns begin anew with the new length of
// a step.
constexpr uint64_t kMisfitSteps = 6;

// Returns a number that is equal for calls of the same collective and size.
uint32_t KindOf(const RuleSubject& subject) {
  const uint64_t mixed = subject.bytes * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(subject.collective);
  return static_cast<uint32_t>(mixed >> 32 ^ mixed);
}

}  // namespace

// A Fisher-Yates shuffle of the sets in each round, with the hash that also draws the guard's arms (PlaceIn).
size_t SetOfTurn(uint32_t turn, size_t sets) {
  const uint32_t round = (turn - 1) / static_cast<uint32_t>(sets);
  std::vector<size_t> order(sets);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = sets; i-- > 1;)
    std::swap(order[i], order[PlaceIn(static_cast<uint32_t>(i + 1), static_cast<uint32_t>(i), round)]);
  return order[(turn - 1) % sets];
}

RuleTurns::RuleTurns(std::vector<std::shared_ptr<const OverrideRules>> sets, uint32_t steps)
    : sets_(std::move(sets)), steps_(steps) {}

void RuleTurns::FollowSteps() {
  const uint64_t calls = period_.calls();
  if (calls == calls_of_step_) {
    misfits_ = 0;
  } else if (period_.repeated() >= std::max(kCallsBefore, kStepsBefore * calls) && calls > 0 &&
             (calls_of_step_ == 0 || ++misfits_ >= kMisfitSteps * calls)) {
    calls_of_step_ = calls;
    before_ = turn_;
    misfits_ = taken_ = 0;
  }
}

const OverrideRules& RuleTurns::RulesAt(const RuleSubject& subject, uint64_t call_number) {
  if (!asked_ || call_number != last_call_) {
    // NCCL may ask about several collectives of a call. Only the first question about a call counts the call.
    if (calls_of_step_ > 0) turn_ = before_ + 1 + static_cast<uint32_t>(taken_++ / (calls_of_step_ * steps_));
    period_.Take(KindOf(subject), 0);
    FollowSteps();
    asked_ = true;
    last_call_ = call_number;
  }
  return CurrentRules();
}

}  // namespace dynamiccl
