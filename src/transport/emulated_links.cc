// SPDX-License-Identifier: Apache-2.0
// Makes emulated links from a topology. All numbers of a link follow from the topology's text, so every rank
// computes the same ones. Only how long a link is busy lies in shared memory.
#include "src/transport/emulated_links.h"

#include <algorithm>
#include <set>

#include "src/base/clock.h"

namespace dynamiccl {
namespace {

void KeepSlower(std::optional<LinkParameters>& slowest, const LinkParameters& link) {
  if (!slowest) slowest = link;
  slowest->latency_us = std::max(slowest->latency_us, link.latency_us);
  slowest->bandwidth_gbps = std::min(slowest->bandwidth_gbps, link.bandwidth_gbps);
}

// Returns all rails between two nodes as one link, with every rail as slow as the slowest one.
LinkParameters NominalOf(const Topology& topology, int from_node, int to_node) {
  const int rails = topology.RailsBetween(from_node, to_node);
  std::optional<LinkParameters> slowest;
  for (int rail = 0; rail < rails; ++rail) {
    const auto shape = topology.Between(from_node, to_node, rail);
    KeepSlower(slowest, shape ? shape->nominal() : kUnshapedLink);
  }
  slowest->bandwidth_gbps *= rails;
  return *slowest;
}

}  // namespace

EmulatedLinks::EmulatedLinks(Topology topology, std::vector<int> node_of_rank,
                             std::shared_ptr<Segment> states)
    : topology_(std::move(topology)), node_of_rank_(std::move(node_of_rank)), states_(std::move(states)) {
  if (states_ == nullptr) return;
  // The first rank that gets here starts the clock for all ranks.
  int64_t unset = 0;
  clock().epoch_ns.compare_exchange_strong(unset, MonotonicNanoseconds());
}

bool EmulatedLinks::shaped(int from, int to) const {
  return from != to && topology_.Between(node(from), node(to), 0).has_value();
}

bool EmulatedLinks::any_shaped() const {
  const int n = static_cast<int>(node_of_rank_.size());
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (shaped(from, to)) return true;
    }
  }
  return false;
}

size_t EmulatedLinks::RailState(int from_node, int to_node, int rail) const {
  // States are ordered by (from, to, rail). Nodes are filled in order, so the number of a node that has ranks
  // is below the number of ranks.
  const size_t pair = static_cast<size_t>(from_node) * node_of_rank_.size() + static_cast<size_t>(to_node);
  return pair * kRailStates + static_cast<size_t>(rail);
}

size_t EmulatedLinks::PairState(int from, int to) const {
  const size_t n = node_of_rank_.size();
  return kRailStates * n * n + static_cast<size_t>(from) * n + static_cast<size_t>(to);
}

ShapedLink EmulatedLinks::Make(int from_node, int to_node, int rail, size_t state) const {
  LinkTimeline timeline(*topology_.Between(from_node, to_node, rail),
                        topology_.EventsOf(from_node, to_node, rail));
  // Multiplying by an odd number gives different links and different topologies different seeds.
  const uint64_t seed = static_cast<uint64_t>(topology_.seed) * 0xd1342543de82ef95 + state;
  return {std::move(timeline), seed, &states_->link_state(state), &clock()};
}

std::unique_ptr<ShapedLink> EmulatedLinks::Link(int from, int to, int channel) const {
  if (!shaped(from, to)) return nullptr;
  const int rail = channel % topology_.RailsBetween(node(from), node(to));
  const bool within = node(from) == node(to);
  const size_t state = within ? PairState(from, to) : RailState(node(from), node(to), rail);
  return std::make_unique<ShapedLink>(Make(node(from), node(to), rail, state));
}

Fabric EmulatedLinks::FabricOf(const std::vector<int>& ranks, int max_channels) const {
  std::set<int> nodes;
  for (const int rank : ranks) nodes.insert(node(rank));
  std::optional<LinkParameters> intra;
  std::optional<LinkParameters> inter;
  for (const int from : nodes) {
    for (const int to : nodes) KeepSlower(from == to ? intra : inter, NominalOf(topology_, from, to));
  }
  Fabric fabric;
  fabric.n_ranks = static_cast<int32_t>(ranks.size());
  fabric.n_nodes = static_cast<int32_t>(nodes.size());
  fabric.max_channels = max_channels;
  fabric.intra = *intra;
  fabric.inter = inter.value_or(LinkParameters{});
  return fabric;
}

void EmulatedLinks::NoteCall(int64_t call) const {
  if (states_ == nullptr) return;
  std::atomic<int64_t>& calls = clock().calls;
  int64_t seen = calls.load(std::memory_order_relaxed);
  while (seen < call && !calls.compare_exchange_weak(seen, call, std::memory_order_relaxed)) {
  }
}

void EmulatedLinks::ForEachWire(const std::function<void(Wire&)>& visit) const {
  const auto call = [&](int from_node, int to_node, int rail, size_t state) {
    Wire wire{from_node, to_node, rail, &states_->link_state(state), Make(from_node, to_node, rail, state)};
    visit(wire);
  };
  const std::set<int> nodes(node_of_rank_.begin(), node_of_rank_.end());
  for (const int from : nodes) {
    for (const int to : nodes) {
      for (int rail = 0; from != to && rail < topology_.rails; ++rail) {
        if (topology_.Between(from, to, rail)) call(from, to, rail, RailState(from, to, rail));
      }
    }
  }
  const int n = static_cast<int>(node_of_rank_.size());
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (node(from) == node(to) && shaped(from, to)) call(node(from), node(to), 0, PairState(from, to));
    }
  }
}

}  // namespace dynamiccl
