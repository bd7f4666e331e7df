// SPDX-License-Identifier: Apache-2.0
// The parameters of one unit in one flat tensor, to which the layers' tensors are views.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "zero_workloads/models/unit.h"

namespace dynamiccl::zero {

class FlatParameters {
 public:
  // Computes the places of the unit's parameters; Bind makes the memory.
  explicit FlatParameters(ModelUnit unit);

  // Flat length without padding at the end.
  int64_t elements() const { return elements_; }
  const at::Tensor& flat() const { return flat_; }
  const ModelUnit& unit() const { return unit_; }

  // Allocates `padded_elements` zeros and binds the layers' tensors to their places; a tensor that is there
  // already stays the same tensor, with other memory.
  void Bind(int64_t padded_elements, const at::TensorOptions& options);
  // Calls `ready` on the thread of the backward pass once every parameter of the unit has its gradient of
  // this pass.
  void OnGradientsReady(std::function<void()> ready);
  // A new pass: gradients of an earlier one that some parameters did not get are not waited for.
  void StartPass() { gradients_ready_ = 0; }

  // First values of flat elements [begin, end), zero in the padding, as a new fp32 tensor on the host.
  at::Tensor InitialValues(uint64_t seed, int64_t begin, int64_t end) const;
  // M_D: from the next pass on the gradients are copied to `home` as soon as autograd has made each, and stay
  // there; or, with `sums`, AccumulateGradients adds up there. elements() long.
  void KeepGradientsIn(const at::Tensor& home) { gradient_home_ = home; }
  void SumGradientsIn(const at::Tensor& sums) { sums_home_ = sums; }
  // Adds the gradients to the unit's own sums, of `type`, and drops them. CopyGradients reads the sums from
  // then on.
  void AccumulateGradients(at::ScalarType type);
  // Copies gradients of flat elements [begin, begin + output.numel()) to `output`, in its type, zeros into
  // the padding.
  void CopyGradients(int64_t begin, const at::Tensor& output) const;
  // The gradients and their sums.
  void DropGradients();

  // Calls visit(parameter, begin, end) for each parameter with elements in flat [begin, end): the range
  // inside the parameter.
  void ForEachParameter(int64_t begin, int64_t end,
                        const std::function<void(size_t parameter, int64_t begin, int64_t end)>& visit) const;
  int64_t offset(size_t parameter) const { return offsets_[parameter]; }

 private:
  void MoveHome(size_t parameter);

  ModelUnit unit_;
  std::vector<int64_t> offsets_;
  int64_t elements_ = 0;
  at::Tensor flat_;
  at::Tensor gradient_sums_;  // over the flat elements without padding at the end; undefined: none
  at::Tensor gradient_home_, sums_home_;  // undefined: memory is allocated for each pass
  size_t gradients_ready_ = 0;
};

}  // namespace dynamiccl::zero
