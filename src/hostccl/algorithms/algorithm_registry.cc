// SPDX-License-Identifier: Apache-2.0
// The table of algorithms. docs/algorithms.md explains each of them and derives the costs in the summaries.
#include "src/hostccl/algorithms/algorithm_registry.h"

#include <algorithm>

namespace dynamiccl::hostccl {
namespace {

// One row for each pair of collective and algorithm. The summary in a row gives the number of steps on the
// longest path, and the bytes that each rank sends.
constexpr AlgorithmEntry kEntries[] = {
    {Collective::kAllReduce, Algorithm::kRing, {RingAllReduce, nullptr}, "2(n-1) steps, 2S(n-1)/n bytes"},
    {Collective::kAllReduce,
     Algorithm::kTree,
     {TreeReduceUp, TreeBroadcastDown},
     "at most 2(log2(n)+1) steps, up to 4S bytes at an inner node"},
    {Collective::kAllGather, Algorithm::kRing, {RingAllGather, nullptr}, "n-1 steps, S(n-1)/n bytes"},
    {Collective::kReduceScatter, Algorithm::kRing, {RingReduceScatter, nullptr}, "n-1 steps, S(n-1)/n bytes"},
    {Collective::kBroadcast, Algorithm::kRing, {RingBroadcast, nullptr}, "n-1 steps, S bytes"},
    {Collective::kReduce, Algorithm::kRing, {RingReduce, nullptr}, "n-1 steps, S bytes"},
    {Collective::kAllGather, Algorithm::kPat, {PatAllGather, nullptr}, "ceil(log2(n)) steps, S(n-1)/n bytes"},
    {Collective::kReduceScatter,
     Algorithm::kPat,
     {PatReduceScatter, nullptr},
     "ceil(log2(n)) steps, S(n-1)/n bytes"},
    {Collective::kAllReduce,
     Algorithm::kNvls,
     {OnePassAllReduce, nullptr},
     "2 steps, reads S(n-1)/n and stores S(n-1)/n bytes in peers' memory"},
    {Collective::kAllReduce,
     Algorithm::kNvlsTree,
     {NvlsTreeUp, NvlsTreeDown},
     "2 steps on the node and at most 2(log2(nodes)+1) between, for each of the node's shares"},
    {Collective::kAllGather,
     Algorithm::kNvls,
     {OnePassAllGather, nullptr},
     "1 step, reads S(n-1)/n bytes in peers' memory"},
    {Collective::kReduceScatter,
     Algorithm::kNvls,
     {OnePassReduceScatter, nullptr},
     "1 step, reads S(n-1)/n bytes in peers' memory"},
};

// The rows for HOSTCCL_SUM=rank_order. Their algorithm field has no meaning, because they replace whatever
// algorithm was chosen.
constexpr AlgorithmEntry kOrdered[] = {
    {Collective::kAllReduce,
     Algorithm::kUndefined,
     {OrderedAllReduce, nullptr},
     "2(n-1) steps, 2S(n-1)/n bytes"},
    {Collective::kReduceScatter,
     Algorithm::kUndefined,
     {OrderedReduceScatter, nullptr},
     "n-1 steps, S(n-1)/n bytes"},
    {Collective::kReduce, Algorithm::kUndefined, {OrderedReduce, nullptr}, "1 step, S bytes to the root"},
};

}  // namespace

std::span<const AlgorithmEntry> AllAlgorithms() {
  return kEntries;
}

bool RunsOn(Algorithm algorithm, int n_ranks, int n_nodes) {
  switch (algorithm) {
    // NVLS runs on one node only, because the switch that it uses connects the devices of one node.
    case Algorithm::kNvls:
      return n_nodes == 1 && n_ranks > 1;
    case Algorithm::kNvlsTree:
      return n_nodes > 1 && n_ranks > n_nodes;
    case Algorithm::kPat:
      return n_nodes > 1 && n_ranks == n_nodes;
    default:
      return true;
  }
}

const AlgorithmEntry* FindOrderedAlgorithm(Collective collective) {
  for (const AlgorithmEntry& entry : kOrdered) {
    if (entry.collective == collective) return &entry;
  }
  return nullptr;
}

const AlgorithmEntry* FindAlgorithm(Collective collective, Algorithm algorithm) {
  const auto* const found =
      std::find_if(std::begin(kEntries), std::end(kEntries), [&](const AlgorithmEntry& entry) {
        return entry.collective == collective && entry.algorithm == algorithm;
      });
  return found == std::end(kEntries) ? nullptr : found;
}

}  // namespace dynamiccl::hostccl
