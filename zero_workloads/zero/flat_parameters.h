// SPDX-License-Identifier: Apache-2.0
// The parameters of one unit in one flat tensor, of which the layers' tensors are views. Collectives then
// handle a whole unit in one call, and a shard is a contiguous range.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "zero_workloads/models/unit.h"

namespace dynamiccl::zero {

// Memory and gradients of one unit on one rank. The engine owns one for each unit, at a fixed address, and
// calls it on the training thread; gradients become ready on the thread of the backward pass. Each parameter
// starts at a multiple of kParameterAlignment, and the gaps are padding that holds zeros.
class FlatParameters {
 public:
  // Computes the places of the unit's parameters. Bind allocates the memory.
  explicit FlatParameters(ModelUnit unit);

  // The length of the flat tensor without padding at its end.
  int64_t elements() const { return elements_; }
  const at::Tensor& flat() const { return flat_; }
  const ModelUnit& unit() const { return unit_; }

  // Allocates `padded_elements` zeros and makes the layers' tensors views of their places. A tensor that
  // already exists stays the same object, with other memory.
  void Bind(int64_t padded_elements, const at::TensorOptions& options);
  // Arranges that `ready` is called in each backward pass, as soon as every parameter of the unit has its
  // gradient. The call is on the thread of the backward pass. Call this function once, after Bind.
  void OnGradientsReady(std::function<void()> ready);
  // Starts a new pass. Gradients that the previous pass did not produce are no longer waited for.
  void StartPass() { gradients_ready_ = 0; }

  // ComputeFirstValues computes those first values that are computed late. DropFirstValues frees the values
  // that the slots hold. InitialValues reads the values in between.
  void ComputeFirstValues();
  void DropFirstValues();
  // First values of flat elements [begin, end), zero in the padding, as a new fp32 tensor on the host.
  at::Tensor InitialValues(uint64_t seed, int64_t begin, int64_t end) const;
  // Contiguous gradients (M_D of the ZeRO paper, section 6.3): from the next pass on, each gradient is copied
  // to its place in `home` as soon as autograd has made it. `home` has elements() elements.
  void KeepGradientsIn(const at::Tensor& home) { gradient_home_ = home; }
  // Contiguous gradients: from now on AccumulateGradients adds gradients up in `sums`, which has elements()
  // elements, and allocates nothing.
  void SumGradientsIn(const at::Tensor& sums) { sums_home_ = sums; }
  // Adds the gradients of this pass to the unit's own sums, which have type `type`, and then frees the
  // gradients. CopyGradients then reads the sums.
  void AccumulateGradients(at::ScalarType type);
  // Copies the gradients of flat elements [begin, begin + output.numel()) to `output`, converted to its type.
  // Padding and missing gradients become zeros.
  void CopyGradients(int64_t begin, const at::Tensor& output) const;
  // Frees the gradients and their sums. Memory that KeepGradientsIn or SumGradientsIn was given stays
  // allocated.
  void DropGradients();

  // Calls visit(parameter, begin, end) for each parameter with elements in flat range [begin, end). The range
  // that visit gets is relative to the parameter.
  void ForEachParameter(int64_t begin, int64_t end,
                        const std::function<void(size_t parameter, int64_t begin, int64_t end)>& visit) const;
  // Offset of the parameter in the flat tensor.
  int64_t offset(size_t parameter) const { return offsets_[parameter]; }

 private:
  // Copies a parameter's gradient to `gradient_home_` and frees autograd's memory.
  void MoveHome(size_t parameter);

  ModelUnit unit_;
  std::vector<int64_t> offsets_;
  int64_t elements_ = 0;
  at::Tensor flat_;
  // Gradients added up over passes, [elements()]; undefined if AccumulateGradients was not called.
  at::Tensor gradient_sums_;
  // Memory for gradients and for their sums, [elements()] each. If undefined, each pass allocates its own
  // memory.
  at::Tensor gradient_home_, sums_home_;
  // Number of parameters whose gradient of this pass has been computed.
  size_t gradients_ready_ = 0;
  // Ends with this object. The hooks of the layers' tensors hold it weakly: the layers may be used after the
  // engine, and then the hooks do nothing.
  std::shared_ptr<const bool> life_ = std::make_shared<const bool>(true);
};

}  // namespace dynamiccl::zero
