// SPDX-License-Identifier: Apache-2.0
#include "src/transport/emulated_links.h"

#include <algorithm>
#include <set>

namespace dynamiccl {
namespace {

void KeepSlower(std::optional<LinkParameters>& slowest, const LinkParameters& link) {
  if (!slowest) slowest = link;
  slowest->latency_us = std::max(slowest->latency_us, link.latency_us);
  slowest->bandwidth_gbps = std::min(slowest->bandwidth_gbps, link.bandwidth_gbps);
}

}  // namespace

std::unique_ptr<ShapedLink> EmulatedLinks::Link(int from, int to) const {
  const auto link = topology_.Between(node(from), node(to));
  if (!link || from == to) return nullptr;
  const int n = static_cast<int>(node_of_rank_.size());
  // States of node pairs first, then those of rank pairs; a node's number is less than the number of ranks.
  const int index = node(from) != node(to) ? node(from) * n + node(to) : n * n + from * n + to;
  return std::make_unique<ShapedLink>(link->latency_us, link->bandwidth_gbps, &states_->link_state(index));
}

Fabric EmulatedLinks::FabricOf(const std::vector<int>& ranks, int max_channels) const {
  std::set<int> nodes;
  for (const int rank : ranks) nodes.insert(node(rank));
  std::optional<LinkParameters> intra;
  std::optional<LinkParameters> inter;
  for (const int from : nodes) {
    for (const int to : nodes) {
      KeepSlower(from == to ? intra : inter, topology_.Between(from, to).value_or(kUnshapedLink));
    }
  }
  Fabric fabric;
  fabric.n_ranks = static_cast<int32_t>(ranks.size());
  fabric.n_nodes = static_cast<int32_t>(nodes.size());
  fabric.max_channels = max_channels;
  fabric.intra = *intra;
  fabric.inter = inter.value_or(LinkParameters{});
  return fabric;
}

}  // namespace dynamiccl
