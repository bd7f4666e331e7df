// SPDX-License-Identifier: Apache-2.0
// Chooses the kernels, and runs passes that are only copies. See reduce_kernel.h.
#include "src/hostccl/reduce_kernels/reduce_kernel.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "src/base/settings.h"
#include "src/hostccl/reduce_kernels/kernel_set.h"

namespace dynamiccl::hostccl {
namespace {

// In bytes: the size of a second-level cache if the system does not report one. Most server cores have 2 MiB.
constexpr size_t kAssumedL2Bytes = size_t{2} << 20;
// In bytes. A copy to several outputs is done in blocks of this size, which stay in the first-level cache.
constexpr size_t kCopyBlockBytes = 8 << 10;

// Returns the last set that this machine can run. The sets are ordered, so it is the one with the widest
// vectors.
KernelSet Widest() {
  KernelSet widest = KernelSet::kPortable;
  for (const KernelSet set : kKernelSets) widest = Runs(set) ? set : widest;
  return widest;
}

// HOSTCCL_KERNELS is read once per process. A wrong name is not handled here, because it has already made the
// creation of the communicator fail.
KernelSet UsedSet() {
  static const KernelSet used = KernelSetFromEnvironment().value_or(Widest());
  return used;
}

// Returns true for the types that are computed as fp32: fp16, bf16 and fp8.
bool IsWidened(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBfloat16 || type == DataType::kFloat8e4m3 ||
         type == DataType::kFloat8e5m2;
}

// Runs a pass that copies its only input to all outputs. A copy to one output is not cut into blocks, which
// would take 4 to 8 % longer for 256 KiB to 1 MiB.
void CopyToAll(const Combination& c, size_t element_bytes) {
  const size_t bytes = c.count * element_bytes;
  const size_t block = c.n_outputs == 1 ? bytes : kCopyBlockBytes;
  for (size_t at = 0; at < bytes; at += block) {
    const size_t part = std::min(block, bytes - at);
    for (size_t k = 0; k < c.n_outputs; ++k) {
      if (c.outputs[k] != c.inputs[0]) std::memcpy(c.outputs[k] + at, c.inputs[0] + at, part);
    }
  }
}

}  // namespace

void Reduction::CombineN(const Combination& combination, bool is_final) const {
  const int due = is_final ? divisor : 1;
  const bool copies = combination.n_inputs == 1 && combination.multipliers == nullptr && due == 1;
  if (!copies) return combine(combination, due);
  if (combination.streamed == 0) return CopyToAll(combination, element_bytes);
  // The data are copied as bytes, because arithmetic on the data type would change the bits of a NaN.
  static const CombineKernel copy = KernelsOf(UsedSet(), DataType::kUint8, ReduceOp::kSum).combine;
  Combination bytes = combination;
  bytes.count *= element_bytes;
  copy(bytes, 1);
}

void Reduction::Combine(std::byte* out, const std::byte* a, const std::byte* b, size_t count) const {
  const std::byte* const inputs[] = {a, b};
  combine({.inputs = inputs, .n_inputs = 2, .outputs = &out, .n_outputs = 1, .count = count}, 1);
}

void Reduction::ScaleOwn(std::byte* out, const std::byte* own, size_t count) const {
  const ElementValue* const by = multiplier ? &*multiplier : nullptr;
  CombineN({.inputs = &own,
            .n_inputs = 1,
            .outputs = &out,
            .n_outputs = 1,
            .count = count,
            .multipliers = by != nullptr ? &by : nullptr},
           false);
}

Reduction FindReduction(DataType type, ReduceOp op, int n_ranks, std::optional<ElementValue> multiplier) {
  return {KernelsOf(UsedSet(), type, op).combine, ElementBytes(type), op == ReduceOp::kAvg ? n_ranks : 1,
          multiplier};
}

// The sum is kept in the compute type until the end. The division of avg is done on this sum, before it is
// rounded.
WideAccumulation FindWideAccumulation(DataType type, ReduceOp op, int n_ranks) {
  const TypeKernels kernels = KernelsOf(UsedSet(), type, op);
  const DataType wide = IsWidened(type) ? DataType::kFloat32 : type;
  return {FindReduction(wide, op, n_ranks), kernels.widen, kernels.narrow};
}

size_t StreamThresholdBytes() {
  static const size_t threshold = [] {
    const int64_t given = IntegerSetting(Setting::kHostcclStreamBytes).value_or(0);
    if (given > 0) return static_cast<size_t>(given);
    const long l2 = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    return l2 > 0 ? static_cast<size_t>(l2) : kAssumedL2Bytes;
  }();
  return threshold;
}

TypeKernels KernelsOf(KernelSet set, DataType type, ReduceOp op) {
  switch (set) {
    case KernelSet::kPortable:
      break;
    case KernelSet::kAvx2:
      return Avx2Kernels(type, op);
    case KernelSet::kAvx512:
      return Avx512Kernels(type, op);
  }
  return PortableKernels(type, op);
}

const char* Name(KernelSet set) {
  switch (set) {
    case KernelSet::kPortable:
      break;
    case KernelSet::kAvx2:
      return "avx2";
    case KernelSet::kAvx512:
      return "avx512";
  }
  return "portable";
}

bool Runs(KernelSet set) {
  return CpuRuns(set);
}

Result<KernelSet> KernelSetFromEnvironment() {
  const std::string given = TextSetting(Setting::kHostcclKernels);
  if (given.empty()) return Widest();
  std::string runs;
  for (const KernelSet set : kKernelSets) {
    if (!Runs(set)) continue;
    if (given == Name(set)) return set;
    runs += runs.empty() ? Name(set) : fmt::format(", {}", Name(set));
  }
  return MakeError(ErrorKind::kInvalidArgument, "HOSTCCL_KERNELS='{}': this machine runs {}", given, runs);
}

}  // namespace dynamiccl::hostccl
