// SPDX-License-Identifier: Apache-2.0
// The table of user-made operators. See reduction_operators.h.
#include "src/hostccl/reduction_operators.h"

#include <atomic>
#include <cstring>

namespace dynamiccl::hostccl {

ElementValue PreMultiplier::Read() const {
  ElementValue read = value;
  if (location != nullptr) std::memcpy(read.bytes.data(), location, ElementBytes(data_type));
  return read;
}

ncclRedOp_t ReductionOperators::Add(const PreMultiplier& factor) {
  static std::atomic<int> next{ncclNumOps};
  const int number = next.fetch_add(1);
  const std::lock_guard lock(mutex_);
  factors_[number] = factor;
  return static_cast<ncclRedOp_t>(number);
}

std::optional<PreMultiplier> ReductionOperators::Find(ncclRedOp_t op) const {
  const std::lock_guard lock(mutex_);
  const auto found = factors_.find(static_cast<int>(op));
  return found == factors_.end() ? std::nullopt : std::optional(found->second);
}

bool ReductionOperators::Remove(ncclRedOp_t op) {
  const std::lock_guard lock(mutex_);
  return factors_.erase(static_cast<int>(op)) == 1;
}

}  // namespace dynamiccl::hostccl
