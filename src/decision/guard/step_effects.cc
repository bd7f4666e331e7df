// SPDX-License-Identifier: Apache-2.0
// Take collects the calls of a step. End passes the step to the shares, together with the one before it.
#include "src/decision/guard/step_effects.h"

#include <utility>

namespace dynamiccl {

void StepEffects::Take(const Call& call, const StepPeriod& steps) {
  if (!steps.steady() || steps.calls() != period_) {
    held_ = 0;
    Restart();
    // Shares that were learnt from other steps do not hold for the new ones.
    if (steps.calls() != 0 && std::exchange(period_, steps.calls()) != steps.calls()) shares_ = {};
    return;
  }
  ++held_;
  if (calls_ == period_) End(call);
  if (calls_++ == 0) now_ = {call.issued_ns, call.number, {}, true};
  now_.is_known &= call.excess_is_known;
  if (call.excess_ns != 0) now_.excess_ns[call.key] += call.excess_ns;
}

void StepEffects::Restart() {
  calls_ = 0;
  before_.reset();
  shares_.ForgetLevel();
}

void StepEffects::End(const Call& next) {
  calls_of_step_ = next.number - now_.begun_at;
  if (before_ && before_->is_known && now_.is_known) {
    for (const auto& [key, ns] : now_.excess_ns) before_->excess_ns[key] += ns;
    shares_.TakeSteps(before_->excess_ns, static_cast<double>(next.issued_ns - before_->begun_ns));
  }
  before_ = std::move(now_);
  calls_ = 0;
}

}  // namespace dynamiccl
