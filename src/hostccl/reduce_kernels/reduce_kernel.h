// SPDX-License-Identifier: Apache-2.0
// Element-wise arithmetic on host memory of any alignment, chosen at run time by data type, operator and CPU.
// fp16, bf16 and fp8 are widened to fp32, combined over all inputs of a pass, and rounded once, to nearest
// even. Every set of kernels gives the same bits (docs/algorithms.md, "Arithmetic"). Any thread may call the
// functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/base/status.h"
#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"

namespace dynamiccl::hostccl {

// One element of any data type. Its bytes come first; the rest of the array is unused.
struct ElementValue {
  alignas(8) std::array<std::byte, 8> bytes{};
  friend bool operator==(const ElementValue&, const ElementValue&) = default;
};

// One pass: output[i] = ((in0[i] op in1[i]) op in2[i]) ..., stored to every output. An output may be one of
// the inputs; otherwise it must not overlap them. Pointers may have any alignment.
struct Combination {
  const std::byte* const* inputs = nullptr;  // in the order in which they are summed
  size_t n_inputs = 0;                       // at least 1
  std::byte* const* outputs = nullptr;
  size_t n_outputs = 0;  // 1 to 64
  size_t count = 0;      // elements
  // One factor for each input, null for an input without a factor. The product of input and factor is rounded
  // before it is combined. The whole list is null if no input has a factor.
  const ElementValue* const* multipliers = nullptr;
  // Bit k says that output k is not read soon, so the kernel writes it past the caches. When the call
  // returns, these stores are in order with later ones.
  uint64_t streamed = 0;
};

// A function that runs one pass. `divisor` divides the result before it is rounded (integers are rounded
// towards zero); 1 means no division.
using CombineKernel = void (*)(const Combination& combination, int divisor);
// Functions that convert to and from the compute type. This is fp32 for fp16, bf16 and fp8; other types are
// their own compute type.
using WidenKernel = void (*)(void* wide, const void* narrow, size_t count);
using NarrowKernel = void (*)(void* narrow, const void* wide, size_t count);

// Says how to combine the elements of one call. This is a plain value.
struct Reduction {
  CombineKernel combine = nullptr;
  size_t element_bytes = 1;
  int divisor = 1;  // number of ranks for avg, otherwise 1
  // The factor of ncclRedOpCreatePreMulSum, by which this rank's own input is multiplied before the sum.
  // Ranks may have different factors.
  std::optional<ElementValue> multiplier;

  // Runs one pass. `is_final` says that the sum is complete after this pass, so that avg's division is
  // applied.
  void CombineN(const Combination& combination, bool is_final) const;
  // Computes out = a op b.
  void Combine(std::byte* out, const std::byte* a, const std::byte* b, size_t count) const;
  // Copies this rank's input in the form that the other ranks must get: multiplied by the operator's factor,
  // if it has one.
  void ScaleOwn(std::byte* out, const std::byte* own, size_t count) const;
};

// Returns the reduction for a data type and operator; every such pair has one. kAvg combines like kSum, and
// the last pass divides.
Reduction FindReduction(DataType type, ReduceOp op, int n_ranks, std::optional<ElementValue> multiplier = {});

// The sum of HOSTCCL_SUM=rank_order. It is kept in elements of the compute type, which are rounded once at
// the end.
struct WideAccumulation {
  Reduction reduction;  // works on elements of the compute type
  WidenKernel widen = nullptr;
  NarrowKernel narrow = nullptr;
};
WideAccumulation FindWideAccumulation(DataType type, ReduceOp op, int n_ranks);

// Returns the number of bytes that a call must read and write on this rank before storing past the caches
// pays: HOSTCCL_STREAM_BYTES, or the size of the second-level cache. On a machine with 2 MiB a core the
// one-pass AllReduce and ReduceScatter gained 5 to 20 % above this size and nothing below
// (docs/algorithms.md).
size_t StreamThresholdBytes();

// The instruction sets for which there are kernels, from the narrowest to the widest vectors.
enum class KernelSet { kPortable, kAvx2, kAvx512 };
inline constexpr KernelSet kKernelSets[] = {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512};

// Returns "portable", "avx2" or "avx512".
const char* Name(KernelSet set);
// Returns true if this CPU can run the set and this build contains it.
bool Runs(KernelSet set);
// Returns the set that HOSTCCL_KERNELS names, or the widest one that runs on this machine. An error names the
// sets that run.
Result<KernelSet> KernelSetFromEnvironment();

}  // namespace dynamiccl::hostccl
