// SPDX-License-Identifier: Apache-2.0
// Several sets of rules that take turns within one job, so that what they do to a training step can be
// compared side by side: the machine, its load and the program's state are the same for all of them.
//
// A turn is a few whole steps under one set. The sets follow each other in rounds, and each round has an
// order of its own:
//     A A A | C C C | B B B || B B B | A A A | C C C || ...
// What a step is, the calls themselves say (guard/step_period.h); before it is known the first set is in use.
// The set of a call is a pure function of the communicator's calls before it, which NCCL requires to be the
// same on all ranks, so all ranks use the same set.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/decision/guard/step_period.h"
#include "src/decision/override_rules.h"

namespace dynamiccl {

// Sets of rules that can take turns at most: every config of one collective, with a few numbers of channels.
inline constexpr size_t kMaxRuleSets = 128;
// Steps of a turn: the first still feels the set before and is left out of comparisons.
inline constexpr uint32_t kLeastTurnSteps = 2;
inline constexpr uint32_t kMaxTurnSteps = 1000;

// Number of the set in use in a turn; turns count from 1. In each round of `sets` turns every set is used
// once.
size_t SetOfTurn(uint32_t turn, size_t sets);

// The turns of one communicator. Its DecisionEngine owns it, and only the thread that issues the
// communicator's calls uses it.
class RuleTurns {
 public:
  // `sets` are neither empty nor null, and attested to be equal on all ranks, as is `steps`, the number of
  // steps of a turn.
  RuleTurns(std::vector<std::shared_ptr<const OverrideRules>> sets, uint32_t steps);

  // Returns the rules for the call with this number and subject. Call numbers do not fall; within one call
  // the rules do not change.
  const OverrideRules& At(const RuleSubject& subject, uint64_t call_number);
  // Returns the rules of the turn under way.
  const OverrideRules& Now() const { return *sets_[turn_ == 0 ? 0 : SetOfTurn(turn_, sets_.size())]; }
  // The turn under way; 0 before the first one, where the first set is in use.
  uint32_t turn() const { return turn_; }

 private:
  // Begins the first turn once steps are known, and begins anew when they have changed.
  void FollowSteps();

  const std::vector<std::shared_ptr<const OverrideRules>> sets_;
  const uint32_t steps_;
  StepPeriod period_;
  bool asked_ = false;
  uint64_t last_call_ = 0;
  uint64_t steady_ = 0;   // calls in a row that repeat the step before
  uint64_t misfits_ = 0;  // calls in a row at which steps have another number of calls than turns assume
  uint64_t calls_of_step_ = 0;  // in the turns; 0: none has begun
  uint64_t taken_ = 0;          // calls since the first turn of these steps
  uint32_t before_ = 0;         // turns of steps with another number of calls
  uint32_t turn_ = 0;
};

}  // namespace dynamiccl
