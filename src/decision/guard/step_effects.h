// SPDX-License-Identifier: Apache-2.0
// What a communicator's calls do to the program's steps: how much of each key's transfers is waited for, and
// whether steps in blocks are slower with the table than with NCCL's choice. Steps are cut from the calls by
// their period.
// Leader only, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "src/decision/guard/block_comparison.h"
#include "src/decision/guard/step_period.h"
#include "src/decision/guard/waited_shares.h"

namespace dynamiccl {

class StepEffects {
 public:
  // Which of both the calls of a step that are compared by blocks use.
  enum class Arm : uint8_t { kNone, kTable, kNccl, kMixed };

  struct Call {
    uint32_t key = 0;
    uint64_t number = 0;  // on its communicator
    int64_t issued_ns = 0;
    double excess_ns = 0;  // more than the key's choice takes; 0 where it is the choice or not known
    Arm arm = Arm::kNone;  // kNone: not compared by blocks
  };
  // After `steps` has taken it.
  void Take(const Call& call, const StepPeriod& steps);
  // Steps have come one after the other for so long that they are no stretches of larger ones.
  bool steady() const { return held_ >= kHeldCalls; }
  // Calls of the communicator in a step, those of which the guard hears nothing among them; 0: not known.
  uint64_t calls_of_step() const { return calls_of_step_; }
  // kUnknown as long as it is not steady.
  Criticality LevelOf(uint32_t key) const { return steady() ? shares_.LevelOf(key) : Criticality::kUnknown; }
  const WaitedShares& shares() const { return shares_; }
  const BlockComparison& blocks() const { return blocks_; }
  // Another comparison.
  void RestartBlocks();
  // Calls from now on are another table's: their steps are others.
  void Restart();

 private:
  static constexpr size_t kHeldCalls = 1024;
  struct Step {
    int64_t begun_ns = 0;
    uint64_t begun_at = 0;  // call
    Arm arm = Arm::kNone;
    std::map<uint32_t, double> excess_ns;
  };
  void End(const Call& next);
  void TakeBlockStep(Arm arm, double step_ns);

  WaitedShares shares_;
  BlockComparison blocks_;
  size_t period_ = 0;
  size_t held_ = 0;  // calls in a row
  uint64_t calls_of_step_ = 0;
  size_t calls_ = 0;  // of this step
  Step now_;
  std::optional<Step> before_;
  // The block under way.
  Arm block_ = Arm::kNone;
  int block_steps_ = -1;  // without the first
  double block_ns_ = 0;
};

}  // namespace dynamiccl
