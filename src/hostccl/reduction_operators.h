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

// The factor of a pre-multiplied sum: a value (ncclScalarHostImmediate), or the address from which the
// collective reads it when it runs (ncclScalarDevice).
struct PreMultiplier {
  DataType data_type = DataType::kFloat32;
  ElementValue value;
  const void* location = nullptr;  // null: `value` is used

  ElementValue Read() const;
};

// The table of one communicator's operators. Any thread.
class ReductionOperators {
 public:
  // Returns a number from ncclNumOps on. No number is used twice in a process, not even by another
  // communicator.
  ncclRedOp_t Add(const PreMultiplier& factor);
  // Returns nothing for an operator that was not made here or was removed.
  std::optional<PreMultiplier> Find(ncclRedOp_t op) const;
  // Returns false if there is no such operator.
  bool Remove(ncclRedOp_t op);

 private:
  mutable std::mutex mutex_;
  std::map<int, PreMultiplier> factors_;
};

}  // namespace dynamiccl::hostccl
