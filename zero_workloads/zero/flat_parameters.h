// SPDX-License-Identifier: Apache-2.0
// The parameters of one unit in one flat tensor, to which the layers' tensors are views.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "zero_workloads/models/gpt.h"

namespace dynamiccl::zero {

class FlatParameters {
 public:
  // Computes the places of the unit's parameters; Bind makes the memory.
  explicit FlatParameters(ModelUnit unit);

  // Flat length without padding at the end.
  int64_t elements() const { return elements_; }
  const at::Tensor& flat() const { return flat_; }
  const ModelUnit& unit() const { return unit_; }

  // Allocates `padded_elements` zeros and binds the layers' tensors to their places.
  void Bind(int64_t padded_elements, const at::TensorOptions& options);
  // Calls `ready` on the thread of the backward pass once every parameter of the unit has its gradient of
  // this pass.
  void OnGradientsReady(std::function<void()> ready);

  // First values of flat elements [begin, end), zero in the padding, as a new fp32 tensor on the host.
  at::Tensor InitialValues(uint64_t seed, int64_t begin, int64_t end) const;
  // Copies gradients of flat elements [begin, begin + output.numel()) to `output`, zeros into the padding.
  void CopyGradients(int64_t begin, const at::Tensor& output) const;
  void DropGradients();

  // Calls visit(parameter, begin, end) for each parameter with elements in flat [begin, end): the range
  // inside the parameter.
  void ForEachParameter(int64_t begin, int64_t end,
                        const std::function<void(size_t parameter, int64_t begin, int64_t end)>& visit) const;
  int64_t offset(size_t parameter) const { return offsets_[parameter]; }

 private:
  ModelUnit unit_;
  std::vector<int64_t> offsets_;
  int64_t elements_ = 0;
  at::Tensor flat_;
  size_t gradients_ready_ = 0;
};

}  // namespace dynamiccl::zero
