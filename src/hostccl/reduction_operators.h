// SPDX-License-Identifier: Apache-2.0
// The operators that a program made on one communicator (ncclRedOpCreatePreMulSum). Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "src/collective/data_type.h"
#include "src/hostccl/reduce_kernels/reduce_kernel.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// The factor of a pre-multiplied sum.
struct PreMultiplier {
  DataType data_type = DataType::kFloat32;
  ElementValue value;              // ncclScalarHostImmediate
  const void* location = nullptr;  // ncclScalarDevice: read when the collective runs; null otherwise

  ElementValue Read() const;
};

class ReductionOperators {
 public:
  // Numbers from ncclNumOps on; none is used twice, nor by another communicator of the process.
  ncclRedOp_t Add(const PreMultiplier& factor);
  std::optional<PreMultiplier> Find(ncclRedOp_t op) const;
  bool Remove(ncclRedOp_t op);

 private:
  mutable std::mutex mutex_;
  std::map<int, PreMultiplier> factors_;
};

}  // namespace dynamiccl::hostccl
