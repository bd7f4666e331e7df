// SPDX-License-Identifier: Apache-2.0
// Learns, from a communicator's calls, for which part of each key's transfer time the program waits
// (waited_shares.h). The calls are cut into training steps by their period (step_period.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "src/decision/guard/step_period.h"
#include "src/decision/guard/waited_shares.h"

namespace dynamiccl {

// The step effects of one communicator, owned by its Guard on the leader's control thread. While steps are
// not steady it learns nothing; when the period changes, the shares of the former steps are forgotten.
class StepEffects {
 public:
  // One call, reduced to what StepEffects uses.
  struct Call {
    uint32_t key = 0;     // KeyCode
    uint64_t number = 0;  // number of the call on its communicator
    int64_t issued_ns = 0;
    // Nanoseconds by which the call took longer than a call of the key's choice; 0 for calls of the choice,
    // or if the excess is not known.
    double excess_ns = 0;
    bool excess_is_known = true;  // false: the call used another config and was not timed
  };
  // Adds a call. Calls come in order, and `steps` must have received the call before.
  void Take(const Call& call, const StepPeriod& steps);
  // True when the calls have repeated with the period for kHeldCalls calls. A shorter stretch may be equal
  // calls within a larger step.
  bool steady() const { return held_ >= kHeldCalls; }
  // Number of calls in a row, up to the last one, that fitted the present period.
  size_t held() const { return held_; }
  // Calls of the communicator in one step, including those that the guard does not receive; 0: not known.
  uint64_t calls_of_step() const { return calls_of_step_; }
  // Returns the number of a call that begins a step of the program: the call after the longest pause. A host
  // that runs ahead of its device issues the calls of a step early and then waits, so only a step that is cut
  // at the pause takes longer because of its own calls.
  uint64_t step_begins_at() const;
  // Returns the level of a key by its share; kUnknown while steps are not steady.
  Criticality LevelOf(uint32_t key) const { return steady() ? shares_.LevelOf(key) : Criticality::kUnknown; }
  const WaitedShares& shares() const { return shares_; }
  // Drops the step under way and the one before it, because calls from now on use another table.
  void Restart();

 private:
  // Levels are reported after this many calls of steady steps. A stretch of equal calls within a step does
  // not last so long (docs/guard.md).
  static constexpr size_t kHeldCalls = 1024;
  // A step under way or complete.
  struct Step {
    int64_t begun_ns = 0;
    uint64_t begun_at = 0;  // number of its first call
    std::map<uint32_t, double> excess_ns;
    bool is_known = true;  // the excess of every call is known
  };
  // Ends the step under way; `next` is the first call of the next step.
  void End(const Call& next);
  // Notes the pause before a call at a place of the step under way.
  void NotePause(const Call& call, size_t place);

  WaitedShares shares_;
  size_t period_ = 0;  // calls in one of the steps from which the shares are learnt
  size_t held_ = 0;    // calls in a row with that period
  uint64_t calls_of_step_ = 0;
  size_t calls_ = 0;  // calls of the step under way
  int64_t last_issued_ns_ = 0;
  // The pause before the call at one place of a step.
  struct Pause {
    int64_t least_ns = 0;  // the shortest in all steps, because a stall in one step is no pause
    uint64_t offset = 0;   // the call's number minus the number of the step's first call
  };
  std::vector<Pause> pauses_;  // indexed by place
  Step now_;
  std::optional<Step> before_;  // the step before the one under way, if it is usable
};

}  // namespace dynamiccl
