// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/algorithms/algorithm_registry.h"

#include <algorithm>

namespace dynamiccl::hostccl {
namespace {

constexpr AlgorithmEntry kEntries[] = {
    {Collective::kAllReduce, Algorithm::kRing, {RingAllReduce, nullptr}, "2(n-1) steps, 2S(n-1)/n bytes"},
    {Collective::kAllGather, Algorithm::kRing, {RingAllGather, nullptr}, "n-1 steps, S(n-1)/n bytes"},
    {Collective::kReduceScatter, Algorithm::kRing, {RingReduceScatter, nullptr}, "n-1 steps, S(n-1)/n bytes"},
    {Collective::kBroadcast, Algorithm::kRing, {RingBroadcast, nullptr}, "n-1 steps, S bytes"},
    {Collective::kReduce, Algorithm::kRing, {RingReduce, nullptr}, "n-1 steps, S bytes"},
};

}  // namespace

std::span<const AlgorithmEntry> AllAlgorithms() {
  return kEntries;
}

const AlgorithmEntry* FindAlgorithm(Collective collective, Algorithm algorithm) {
  const auto* const found =
      std::find_if(std::begin(kEntries), std::end(kEntries), [&](const AlgorithmEntry& entry) {
        return entry.collective == collective && entry.algorithm == algorithm;
      });
  return found == std::end(kEntries) ? nullptr : found;
}

ConfigMask HostcclConfigs(Collective collective) {
  ConfigMask mask;
  for (const AlgorithmEntry& entry : kEntries) {
    if (entry.collective != collective) continue;
    mask.set(ConfigIndex(entry.algorithm, Protocol::kSimple));
    mask.set(ConfigIndex(entry.algorithm, Protocol::kLL));
  }
  return mask;
}

}  // namespace dynamiccl::hostccl
