// SPDX-License-Identifier: Apache-2.0
// The operators that a program has made on one communicator with ncclRedOpCreatePreMulSum.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "src/collective/data_type.h"
#include "src/hostccl/reduce_kernels/reduce_kernel.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// The factor of such an operator: a value (ncclScalarHostImmediate), or the address from which a collective
// reads the factor when it runs (ncclScalarDevice).
struct PreMultiplier {
  DataType data_type = DataType::kFloat32;
  ElementValue value;
  const void* location = nullptr;  // null: `value` is used

  ElementValue Read() const;
};

// The operators of one communicator. Any thread may use the table.
class ReductionOperators {
 public:
  // Adds an operator and returns its number, which is ncclNumOps or larger. No number is used twice in a
  // process, not even by another communicator.
  ncclRedOp_t Add(const PreMultiplier& factor);
  // Returns the factor of an operator. Returns nothing for an operator that was not made on this communicator
  // or was removed.
  std::optional<PreMultiplier> Find(ncclRedOp_t op) const;
  // Removes an operator. Returns false if there is no such operator.
  bool Remove(ncclRedOp_t op);

 private:
  mutable std::mutex mutex_;
  std::map<int, PreMultiplier> factors_;
};

}  // namespace dynamiccl::hostccl
