// SPDX-License-Identifier: Apache-2.0
// The state on which an engine's next step depends, in the form that checkpoints store: tensors whose
// elements belong to named parameters, and a few single values. A checkpoint can therefore be read with a
// stage and world size other than those it was written with.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "zero_workloads/models/parameter.h"

namespace dynamiccl::zero {

// One state (such as the master weights) of all elements that a rank holds: fp32, one-dimensional and
// contiguous. A restore overwrites the tensor in place.
struct StateTensor {
  // "master", "first_moment" or "second_moment"; the same names at any stage and world size.
  std::string name;
  at::Tensor values;
};

// Elements [begin, end) of a parameter's slot. In every state tensor they lie at [offset, offset + end -
// begin).
struct StateRange {
  const ParameterSlot* parameter = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t offset = 0;
  // True on exactly one of the ranks that hold the range: this rank writes it to a checkpoint.
  bool owned = false;
};

// Values that exist once and are equal on all ranks, such as optimizer steps and loss scale. Both names and
// values are texts.
using StateValues = std::map<std::string, std::string>;

}  // namespace dynamiccl::zero
