// SPDX-License-Identifier: Apache-2.0
// The operators that a program made on one communicator (ncclRedOpCreatePreMulSum).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "src/collective/data_type.h"
#include "src/hostccl/reduce_kernels/reduce_kernel.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// The factor of a pre-multiplied sum: a value (ncclScalarHostImmediate), or the place from which the
// collective reads it when it runs (ncclScalarDevice).
struct PreMultiplier {
  DataType data_type = DataType::kFloat32;
  ElementValue value;
  const void* location = nullptr;  // null: `value` counts

  ElementValue Read() const;
};

// The table of one communicator's operators. Any thread.
class ReductionOperators {
 public:
  // Returns a number from ncclNumOps on. No number is used twice, also not by another communicator of the
  // process.
  ncclRedOp_t Add(const PreMultiplier& factor);
  // Nullopt for an operator that was not made here or was removed.
  std::optional<PreMultiplier> Find(ncclRedOp_t op) const;
  // False when there is no such operator.
  bool Remove(ncclRedOp_t op);

 private:
  mutable std::mutex mutex_;
  std::map<int, PreMultiplier> factors_;
};

}  // namespace dynamiccl::hostccl
