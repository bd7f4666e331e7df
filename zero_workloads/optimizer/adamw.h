// SPDX-License-Identifier: Apache-2.0
// AdamW in fp32 on one flat tensor of master weights, computed by LibTorch's fused kernel. For a step t with
// learning rate a and gradient g (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019,
// algorithm 2, with the decay scaled by the learning rate as in torch):
//
//   w  = w - a * weight_decay * w
//   m  = beta1 * m + (1 - beta1) * g
//   v  = beta2 * v + (1 - beta2) * g^2
//   w  = w - a * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "zero_workloads/models/engine_state.h"

namespace dynamiccl::zero {

// The constants of the formula; equal on all ranks.
struct AdamWSettings {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  // Applies to every parameter, biases and norms included.
  double weight_decay = 0.1;
};

// Master weights w and moments m and v: fp32, one-dimensional, of equal length.
struct AdamWStates {
  at::Tensor master, first_moment, second_moment;

  // Returns views of elements [begin, begin + length) of all three states.
  AdamWStates Slice(int64_t begin, int64_t length) const;
};

// The sub-groups of a step. A step updates the elements from the last to the first, one sub-group after
// another, so that the caller can use the new values of one sub-group while the next one is computed.
struct SubGroups {
  // The first element of each sub-group, in falling order; the first sub-group reaches to the last element.
  // If the list is empty, there is one sub-group. FileAdamW ignores the list and has its own sub-groups.
  std::vector<int64_t> begins;
  // Called in the step after each sub-group: all elements from `begin` on have their new values. An empty
  // function is not called.
  std::function<void(int64_t begin)> updated;
};

// The optimizer of one rank, over the elements that the rank updates. ZeroEngine owns it and calls it on the
// training thread. It has no failure of its own; FileAdamW (offload/) throws when its files fail.
class AdamW {
 public:
  // Uses `states` without copying them; the caller fills the master weights in place. The states may lie
  // in host memory (device/host_memory.h). In that case `slice_elements` elements at a time are copied to the
  // gradients' device and back, where 0 means all at once. A multiple of kShardAlignment
  // (parallel/partition.h) keeps the rounding independent of slicing.
  AdamW(AdamWStates states, const AdamWSettings& settings, int64_t slice_elements = 0);
  virtual ~AdamW() = default;
  // Creates states of `elements` zeros each.
  static AdamWStates ZeroStates(int64_t elements, const at::TensorOptions& options);

  // The master weights, for reading and writing between steps.
  const at::Tensor& master() const { return states_.master; }
  // The three states by name, for checkpoints.
  std::vector<StateTensor> States() const;
  // The number of steps taken: the t of the formula.
  int64_t steps() const;
  void set_steps(int64_t steps);
  // Performs one step. `gradients` are fp32 and as long as the states. `parameters`, if defined, receives the
  // new master weights in its own type and lies on the gradients' device. The result does not depend on
  // `groups` if they begin at multiples of kShardAlignment.
  virtual void Step(const at::Tensor& gradients, double learning_rate, const at::Tensor& parameters,
                    const SubGroups& groups = {});

 protected:
  void CountStep() { steps_.add_(1); }
  // Updates one slice as Step does; the caller has already counted the step.
  void Update(const AdamWStates& slice, const at::Tensor& gradients, double learning_rate,
              const at::Tensor& parameters) const;

  AdamWStates states_;

 private:
  // Updates elements [begin, end), `slice_elements_` at a time.
  void UpdateRange(int64_t begin, int64_t end, const at::Tensor& gradients, double learning_rate,
                   const at::Tensor& parameters) const;

  AdamWSettings settings_;
  // Number of elements that are copied at a time. 0 means all elements.
  int64_t slice_elements_;
  // fp32 scalar, because the fused kernel takes the step count as a tensor.
  at::Tensor steps_;
};

}  // namespace dynamiccl::zero
