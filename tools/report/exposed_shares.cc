// SPDX-License-Identifier: Apache-2.0
#include "tools/report/exposed_shares.h"

#include "src/base/statistics.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

// A guard records the exposed share of a key again when it has changed, so the last value for each role
// counts.
ExposedShares::ExposedShares(const std::vector<WaitedShareView>& waited_shares) {
  std::map<Key, std::map<Role, double>> by_role;
  for (const WaitedShareView& waited : waited_shares)
    by_role[{waited.communicator, waited.collective, waited.bytes}][waited.role] = waited.share;
  for (const auto& [key, of] : by_role) {
    std::vector<double> values;
    for (const auto& [role, share] : of) values.push_back(share);
    shares_[key] = Mean(values);
  }
}

std::optional<double> ExposedShares::Of(const TraceCall& call) const {
  const CollectiveCall& issued = call.issued.call;
  // For several calls in a group NCCL asks the tuner once, so the guard's keys do not match single calls of
  // the group.
  if (call.issued.coverage != Coverage::kTunable || issued.group_size > 1) return std::nullopt;
  const auto share =
      shares_.find({call.communicator, issued.collective, LowerBound(SizeClassOf(issued.bytes))});
  if (share == shares_.end()) return std::nullopt;
  return share->second;
}

}  // namespace dynamiccl
