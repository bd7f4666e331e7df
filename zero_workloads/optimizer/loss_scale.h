// SPDX-License-Identifier: Apache-2.0
// By what the loss is multiplied before the backward pass, so that small gradients do not vanish in half
// precision: doubled while all goes well, halved when gradients overflow (Micikevicius et al., ICLR 2018,
// section 3.2).
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

struct LossScaleSettings {
  double first = 1.0;              // 1 and not dynamic: no scaling
  bool dynamic = false;            // else `first` throughout
  int64_t growth_interval = 1000;  // steps without overflow until the scale doubles
  int64_t hysteresis = 2;          // overflows since the last growth until the scale halves
  double least = 1.0;
};

// The same on all ranks as long as they report the same overflows.
class LossScale {
 public:
  explicit LossScale(const LossScaleSettings& settings);

  double value() const { return value_; }
  bool enabled() const { return settings_.dynamic || settings_.first != 1.0; }
  // Says how the step went. False: gradients overflow though the scale cannot fall any more.
  [[nodiscard]] bool Update(bool overflow);

  // What another run needs in order to go on as this one.
  struct State {
    double value = 1.0;
    int64_t clean_steps = 0;
    int64_t overflows_left = 0;
  };
  State state() const { return {value_, clean_steps_, overflows_left_}; }
  void Restore(const State& state);

 private:
  LossScaleSettings settings_;
  double value_;
  int64_t clean_steps_ = 0;  // since the last overflow or growth
  int64_t overflows_left_;   // until the scale falls
};

}  // namespace dynamiccl::zero
