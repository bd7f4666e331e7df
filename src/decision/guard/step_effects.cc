// SPDX-License-Identifier: Apache-2.0
// Take collects the calls of a step. End passes the complete step and the one before it to WaitedShares.
#include "src/decision/guard/step_effects.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace dynamiccl {

void StepEffects::Take(const Call& call, const StepPeriod& steps) {
  if (!steps.steady() || steps.calls() != period_) {
    held_ = 0;
    pauses_.clear();
    Restart();
    // Shares that were learnt from other steps do not hold for the new ones.
    if (steps.calls() != 0 && std::exchange(period_, steps.calls()) != steps.calls()) shares_ = {};
    return;
  }
  ++held_;
  if (calls_ == period_) End(call);
  if (calls_++ == 0) now_ = {call.issued_ns, call.number, {}, true};
  NotePause(call, calls_ - 1);
  now_.is_known &= call.excess_is_known;
  if (call.excess_ns != 0) now_.excess_ns[call.key] += call.excess_ns;
}

void StepEffects::NotePause(const Call& call, size_t place) {
  const int64_t pause_ns = call.issued_ns - std::exchange(last_issued_ns_, call.issued_ns);
  if (held_ == 1) return;  // the call before it was not seen
  if (pauses_.size() < period_) pauses_.resize(period_, {std::numeric_limits<int64_t>::max(), 0});
  Pause& pause = pauses_[place];
  pause = {std::min(pause.least_ns, pause_ns), call.number - now_.begun_at};
}

uint64_t StepEffects::step_begins_at() const {
  const auto longest = std::max_element(
      pauses_.begin(), pauses_.end(), [](const Pause& a, const Pause& b) { return a.least_ns < b.least_ns; });
  return now_.begun_at + (longest == pauses_.end() ? 0 : longest->offset);
}

void StepEffects::Restart() {
  calls_ = 0;
  pauses_.clear();
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
