// SPDX-License-Identifier: Apache-2.0
// Names of the collectives and their bus bandwidth factors. See collective.h.
#include "src/collective/collective.h"

#include "src/collective/spelling.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kNames[kCollectives] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                                   "AllReduce", "SendRecv", "Send",      "Recv",
                                                   "AlltoAll",  "Scatter",  "Gather"};

}  // namespace

std::string_view Name(Collective collective) {
  const auto index = static_cast<size_t>(collective);
  return index < kCollectives ? kNames[index] : "Unknown";
}

std::optional<Collective> ParseCollective(std::string_view name) {
  for (size_t i = 0; i < kCollectives; ++i) {
    if (SameSpelling(kNames[i], name)) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

double BusBandwidthFactor(Collective collective, int n_ranks) {
  const double n = n_ranks;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kScatter:
    case Collective::kGather:
      return (n - 1) / n;
    default:
      return 1;
  }
}

}  // namespace dynamiccl
