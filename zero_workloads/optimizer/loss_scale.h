// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling for training in half precision. The loss is multiplied by the scale before the
// backward pass, so that small gradients do not vanish. The scale doubles after a run of good steps and
// halves when gradients overflow (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2).
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

// Settings of the loss scaling. They are equal on all ranks.
struct LossScaleSettings {
  // The first scale. If it is 1 and `dynamic` is false, the loss is not scaled.
  double first = 1.0;
  // If false, the scale stays at `first`.
  bool dynamic = false;
  // Number of consecutive steps without overflow after which the scale doubles.
  int64_t growth_interval = 1000;
  // The scale halves at this many overflows since its last growth, and again at each further overflow. A
  // value above 1 tolerates a single odd batch.
  int64_t hysteresis = 2;
  // The scale never falls below this value.
  double least = 1.0;
};

// The loss scale of one engine, which updates it once per step. The scale is equal on all ranks as long as
// the ranks report the same overflows. ZeroEngine guarantees this by deciding on summed values.
class LossScale {
 public:
  explicit LossScale(const LossScaleSettings& settings);

  double value() const { return value_; }
  bool enabled() const { return settings_.dynamic || settings_.first != 1.0; }
  bool dynamic() const { return settings_.dynamic; }
  // Reports whether the gradients of the step overflowed. Returns false if they did and the scale cannot fall
  // any further. Training cannot continue in this case.
  [[nodiscard]] bool Update(bool overflow);

  // The state that another run needs to continue exactly as this one.
  struct State {
    double value = 1.0;
    int64_t clean_steps = 0;
    int64_t overflows_left = 0;
  };
  State state() const { return {value_, clean_steps_, overflows_left_}; }
  // Continues from `state` within this run's own bounds. A fixed scale stays what the settings say.
  void Restore(const State& state);

 private:
  LossScaleSettings settings_;
  double value_;
  // Number of steps since the last overflow or growth.
  int64_t clean_steps_ = 0;
  // The scale halves at the overflow with this number, counted from now. 1 means at the next overflow.
  int64_t overflows_left_;
};

}  // namespace dynamiccl::zero
