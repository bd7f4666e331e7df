// SPDX-License-Identifier: Apache-2.0
// Several sets of rules take turns within one job, so their effects on a training step can be compared side
// by side: the machine, its load and the program's state are the same for all sets.
//
// A turn is a few whole steps under one set. The sets follow each other in rounds, and each round has its own
// order:
//     A A A | C C C | B B B || B B B | A A A | C C C || ...
// The length of a step is found from the calls themselves (guard/step_period.h); until then the first set is
// in use. The set of a call is a pure function of the communicator's earlier calls. NCCL requires these to be
// the same on all ranks, so all ranks use the same set.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/decision/guard/step_period.h"
#include "src/decision/override_rules.h"

namespace dynamiccl {

// The most sets of rules: enough for every config of one collective with a few numbers of channels.
inline constexpr size_t kMaxRuleSets = 128;
// Number of steps in a turn. The first step still shows effects of the previous set, so comparisons leave it
// out.
inline constexpr uint32_t kLeastTurnSteps = 2;
inline constexpr uint32_t kMaxTurnSteps = 1000;

// Returns the number of the set that a turn uses; turns count from 1. In each round of `sets` turns every set
// is used once.
size_t SetOfTurn(uint32_t turn, size_t sets);

// The turns of one communicator. Its DecisionEngine owns it, and only the thread that issues the
// communicator's calls uses it.
class RuleTurns {
 public:
  // `sets` must not be empty or contain null. `steps` is the number of steps in a turn. The ranks have
  // attested that both are equal on all ranks.
  RuleTurns(std::vector<std::shared_ptr<const OverrideRules>> sets, uint32_t steps);

  // Returns the rules for the call with this number and subject. Call numbers must not fall. The rules do not
  // change within one call.
  const OverrideRules& RulesAt(const RuleSubject& subject, uint64_t call_number);
  // Returns the rules of the turn under way.
  const OverrideRules& CurrentRules() const {
    return *sets_[turn_ == 0 ? 0 : SetOfTurn(turn_, sets_.size())];
  }
  // Number of the turn under way; 0 before the first turn, when the first set is in use.
  uint32_t turn() const { return turn_; }

 private:
  // Begins the first turn once the length of a step is known, and begins anew when it has changed.
  void FollowSteps();

  const std::vector<std::shared_ptr<const OverrideRules>> sets_;
  const uint32_t steps_;
  StepPeriod period_;
  bool asked_ = false;
  uint64_t last_call_ = 0;
  uint64_t misfits_ = 0;  // calls in a row at which steps have another number of calls than turns assume
  uint64_t calls_of_step_ = 0;  // calls in a step, as turns assume; 0: no turn has begun
  uint64_t taken_ = 0;          // calls since the first turn with the present step length
  uint32_t before_ = 0;         // number of turns before the step length last changed
  uint32_t turn_ = 0;
};

}  // namespace dynamiccl
