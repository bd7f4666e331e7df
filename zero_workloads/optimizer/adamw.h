// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov and Hutter 2019) in fp32 on one flat tensor of master weights, by LibTorch's fused
// kernel.
#pragma once

#include <ATen/core/Tensor.h>

namespace dynamiccl::zero {

struct AdamWSettings {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of every parameter
};

class AdamW {
 public:
  // `master` holds the first values; the optimizer changes it in place.
  AdamW(at::Tensor master, const AdamWSettings& settings);
  const at::Tensor& master() const { return master_; }
  // `gradients` are fp32 and of the same length.
  void Step(const at::Tensor& gradients, double learning_rate);

 private:
  AdamWSettings settings_;
  at::Tensor master_, first_moment_, second_moment_;
  at::Tensor steps_;  // one number: the kernel wants a tensor
};

}  // namespace dynamiccl::zero
