// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/reduce_kernels/reduce_kernel.h"

#include "src/hostccl/reduce_kernels/kernel_set.h"

namespace dynamiccl::hostccl {
namespace {

bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  return has;
}

TypeKernels Kernels(DataType type, ReduceOp op) {
  return HasAvx2() ? Avx2Kernels(type, op) : PortableKernels(type, op);
}

DataType WideType(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBfloat16 ? DataType::kFloat32 : type;
}

}  // namespace

Reduction FindReduction(DataType type, ReduceOp op, int n_ranks) {
  const TypeKernels kernels = Kernels(type, op);
  return {kernels.combine, op == ReduceOp::kAvg ? kernels.divide : nullptr, ElementBytes(type), n_ranks};
}

WideAccumulation FindWideAccumulation(DataType type, ReduceOp op, int n_ranks) {
  const TypeKernels kernels = Kernels(type, op);
  return {FindReduction(WideType(type), op, n_ranks), kernels.widen, kernels.narrow};
}

const char* KernelSetName() {
  return HasAvx2() ? "avx2" : "portable";
}

}  // namespace dynamiccl::hostccl
