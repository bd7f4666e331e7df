// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/optimizer/adamw.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace dynamiccl::zero {

AdamW::AdamW(at::Tensor master, const AdamWSettings& settings)
    : settings_(settings),
      master_(std::move(master)),
      first_moment_(at::zeros_like(master_)),
      second_moment_(at::zeros_like(master_)),
      steps_(at::zeros({}, master_.options())) {}

void AdamW::Step(const at::Tensor& gradients, double learning_rate) {
  steps_.add_(1);
  at::_fused_adamw_({master_}, {gradients}, {first_moment_}, {second_moment_}, {}, {steps_}, learning_rate,
                    settings_.beta1, settings_.beta2, settings_.weight_decay, settings_.epsilon,
                    /*amsgrad=*/false,
                    /*maximize=*/false);
}

}  // namespace dynamiccl::zero
