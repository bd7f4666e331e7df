// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdint>
#include <type_traits>

#include "src/hostccl/reduce_kernels/kernel_set.h"

namespace dynamiccl::hostccl {
namespace {
#include "src/hostccl/reduce_kernels/element_loops.inc"
}  // namespace

TypeKernels PortableKernels(DataType type, ReduceOp op) {
  return Select(type, op);
}

}  // namespace dynamiccl::hostccl
