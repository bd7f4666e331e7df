// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov and Hutter 2019) in fp32 on one flat tensor of master weights, by LibTorch's fused
// kernel.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "zero_workloads/zero/engine_state.h"

namespace dynamiccl::zero {

struct AdamWSettings {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of every parameter
};

// fp32, of one length.
struct AdamWStates {
  at::Tensor master, first_moment, second_moment;

  AdamWStates Slice(int64_t begin, int64_t length) const;
};

class AdamW {
 public:
  // Zeros on `device`; whoever fills the master weights does it in place. They may lie elsewhere than where
  // the gradients are: then `slice_elements` at a time are brought there and back, a multiple of
  // kShardAlignment (zero/partition.h), which keeps the rounding; 0: all at once.
  AdamW(AdamWStates states, const AdamWSettings& settings, int64_t slice_elements = 0);
  virtual ~AdamW() = default;
  static AdamWStates ZeroStates(int64_t elements, const at::TensorOptions& options);

  // Between steps.
  const at::Tensor& master() const { return states_.master; }
  std::vector<StateTensor> States() const;
  int64_t steps() const;
  void set_steps(int64_t steps);
  // `gradients` are fp32 and of the same length; `parameters`, where defined, gets the new master weights in
  // its type, and lies where the gradients do.
  virtual void Step(const at::Tensor& gradients, double learning_rate, const at::Tensor& parameters);

 protected:
  void CountStep() { steps_.add_(1); }
  // Of a slice, as Step does.
  void Update(const AdamWStates& slice, const at::Tensor& gradients, double learning_rate,
              const at::Tensor& parameters) const;

  AdamWStates states_;

 private:
  AdamWSettings settings_;
  int64_t slice_elements_;
  at::Tensor steps_;  // one number: the kernel wants a tensor
};

}  // namespace dynamiccl::zero
