// SPDX-License-Identifier: Apache-2.0
// Asks a policy for its choices, without a job and without NCCL.
#include "tools/report/policy_choices.h"

#include <fmt/format.h>

#include <algorithm>

namespace dynamiccl {
namespace {

// Smallest and largest size for which the policy is asked, in bytes.
constexpr uint64_t kSmallest = 1 << 10;
constexpr uint64_t kLargest = 64 << 20;
// Number of GPUs in one HGX node, and most ranks of a modelled cluster.
constexpr int kRanksOfNode = 8;
constexpr int kMaxRanks = 1024;

// A fabric of `n_ranks` GPUs. A link is {latency in microseconds, bandwidth in GB/s}: {1, 150} inside a node,
// {4, 50} between nodes (one adapter of 400 Gb/s for each GPU).
MeasurementContext HopperFabric(int n_ranks, std::string name) {
  const int nodes = std::max(1, n_ranks / kRanksOfNode);
  CostModelInput model;
  model.fabric = {
      .n_ranks = n_ranks, .n_nodes = nodes, .max_channels = 8, .intra = {1, 150}, .inter = {4, 50}};
  model.constants = NcclHopperConstants(nodes);
  return {std::move(name), model};
}

}  // namespace

std::vector<PolicyChoice> ChoicesOn(const Policy& policy, const MeasurementContext& fabric) {
  std::vector<PolicyChoice> choices;
  const Fabric& shape = fabric.model.fabric;
  for (int i = 0; i < kTunableCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (uint64_t bytes = kSmallest; bytes <= kLargest; bytes *= 2) {
      const ConfigQuestion question{collective, bytes, NcclConfigs(collective)};
      choices.push_back({fabric.topology, shape.n_ranks, shape.n_nodes, collective, bytes,
                         ChooseConfig(policy, fabric.model, question)});
    }
  }
  return choices;
}

const char* ReasonText(ChoiceReason reason) {
  switch (reason) {
    case ChoiceReason::kPromised:
      return "every network promises a gain";
    case ChoiceReason::kNoPromise:
      return "no config is promised to be faster";
    case ChoiceReason::kOutsideTraining:
      return "outside of what training saw";
    case ChoiceReason::kNothingKnown:
      return "the cost model cannot price it";
  }
  return "";
}

MeasurementContext HopperPair() {
  return HopperFabric(2 * kRanksOfNode, "2 nodes x 8 (NVLink, InfiniBand)");
}

std::vector<MeasurementContext> HopperClusters() {
  std::vector<MeasurementContext> fabrics;
  for (int ranks = 2; ranks <= kMaxRanks; ranks *= 2)
    fabrics.push_back(HopperFabric(ranks, fmt::format("{} ranks, 8 a node (NVLink, InfiniBand)", ranks)));
  return fabrics;
}

}  // namespace dynamiccl
