// SPDX-License-Identifier: Apache-2.0
// What an engine's next step depends on, as a checkpoint sees it: tensors over places that belong to named
// parameters, and a few values.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "zero_workloads/models/parameter.h"

namespace dynamiccl::zero {

// fp32, one-dimensional and contiguous; overwritten in place by who restores it.
struct StateTensor {
  std::string name;  // the same at any stage and world size
  at::Tensor values;
};

// Elements [begin, end) of a parameter's slot, which lie from `offset` on in every state tensor.
struct StateRange {
  const ParameterSlot* parameter = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t offset = 0;
  // Of all ranks of the engine's group that hold it, one does: it writes the range.
  bool owned = false;
};

// What there is once, and equal on all ranks: optimizer steps, loss scale.
using StateValues = std::map<std::string, std::string>;

}  // namespace dynamiccl::zero
