// SPDX-License-Identifier: Apache-2.0
// Take collects the calls of a step and End hands the step on: to the shares together with the step before
// it, and to its block if it is part of a comparison.
#include "src/decision/guard/step_effects.h"

#include <utility>

namespace dynamiccl {
namespace {

// Steps after the first that a block must have to count: a block cut short by a switch has fewer.
constexpr int kLeastStepsOfBlock = 2;

}  // namespace

void StepEffects::Take(const Call& call, const StepPeriod& steps) {
  if (!steps.steady() || steps.calls() != period_) {
    held_ = 0;
    Restart();
    // Shares of other steps say nothing about these.
    if (steps.calls() != 0 && std::exchange(period_, steps.calls()) != steps.calls()) shares_ = {};
    return;
  }
  ++held_;
  if (calls_ == period_) End(call);
  if (calls_++ == 0) now_ = {call.issued_ns, call.number, Arm::kNone, {}};
  if (call.excess_ns != 0) now_.excess_ns[call.key] += call.excess_ns;
  if (call.arm == Arm::kNone) return;
  now_.arm = now_.arm == Arm::kNone || now_.arm == call.arm ? call.arm : Arm::kMixed;
}

void StepEffects::Restart() {
  calls_ = 0;
  before_.reset();
  block_ = Arm::kNone;
  shares_.ForgetLevel();
}

void StepEffects::End(const Call& next) {
  calls_of_step_ = next.number - now_.begun_at;
  // In blocks no hash draws what a call uses, so they are no experiment about shares.
  const bool drawn = now_.arm == Arm::kNone && before_ && before_->arm == Arm::kNone;
  if (drawn) {
    for (const auto& [key, ns] : now_.excess_ns) before_->excess_ns[key] += ns;
    shares_.TakeSteps(before_->excess_ns, static_cast<double>(next.issued_ns - before_->begun_ns));
  }
  TakeBlockStep(now_.arm, static_cast<double>(next.issued_ns - now_.begun_ns));
  before_ = std::move(now_);
  calls_ = 0;
}

void StepEffects::TakeBlockStep(Arm arm, double step_ns) {
  if (arm == block_) {
    if (++block_steps_ > 0) block_ns_ += step_ns;
    return;
  }
  const bool counts = block_ == Arm::kTable || block_ == Arm::kNccl;
  if (counts && block_steps_ >= kLeastStepsOfBlock)
    blocks_.TakeBlock(block_ == Arm::kTable, block_ns_ / block_steps_);
  block_ = arm;
  // The first step of a block is left out.
  block_steps_ = 0;
  block_ns_ = 0;
}

void StepEffects::RestartBlocks() {
  blocks_ = {};
  block_ = Arm::kNone;
}

}  // namespace dynamiccl
