// SPDX-License-Identifier: Apache-2.0
// The shaped links of a communicator and of all that are split from it: they load the same links.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "src/collective/fabric.h"
#include "src/transport/segment.h"
#include "src/transport/shaped_link.h"
#include "src/transport/topology.h"

namespace dynamiccl {

// Ranks here are those of the communicator that was made from a unique id. Shared with split communicators
// and with the link server: shared_ptr.
class EmulatedLinks {
 public:
  // `states` holds the links' state for all ranks: the segment of rank 0, null for one rank.
  EmulatedLinks(Topology topology, std::vector<int> node_of_rank, std::shared_ptr<Segment> states);

  int n_ranks() const { return static_cast<int>(node_of_rank_.size()); }
  int node(int rank) const { return node_of_rank_[static_cast<size_t>(rank)]; }
  const Topology& topology() const { return topology_; }
  bool shaped(int from, int to) const;
  // Some messages of this job are on emulated links.
  bool any_shaped() const;

  // The link that carries a channel's messages: rail channel % rails. Null when they are not shaped. Ranks of
  // a node share the rails to other nodes; inside a node every two ranks have a link of their own.
  std::unique_ptr<ShapedLink> Link(int from, int to, int channel) const;

  // The nominal links between the nodes of these ranks as one number each: the slowest of each class. What
  // happens while the job runs is not in it.
  Fabric FabricOf(const std::vector<int>& ranks, int max_channels) const;

  // A rank begins collective launch `call` of the communicator that was made from the unique id.
  void NoteCall(int64_t call) const;

  // One direction of one rail, for whoever orders or shows changes; inside a node, `rail` is 0 and `from` and
  // `to` are equal: one for each two ranks.
  struct Wire {
    int from_node;
    int to_node;
    int rail;
    LinkState* state;
    ShapedLink link;
  };
  void ForEachWire(const std::function<void(Wire&)>& visit) const;
  JobClock& clock() const { return states_->job_clock(); }

 private:
  ShapedLink Make(int from_node, int to_node, int rail, size_t state) const;
  size_t RailState(int from_node, int to_node, int rail) const;
  size_t PairState(int from, int to) const;

  Topology topology_;
  std::vector<int> node_of_rank_;
  std::shared_ptr<Segment> states_;
};

// What stands for a link that is not shaped: shared memory's software latency is part of the planner's
// constants, its bandwidth is what one core copies through slots that stay in the second-level cache.
inline constexpr LinkParameters kUnshapedLink{.latency_us = 0, .bandwidth_gbps = 8};

// What the planner takes for TCP between hosts, equal on all ranks: a documented constant, not a measurement
// of this network. 10 Gb/s Ethernet with the relay's two extra wake-ups each way.
inline constexpr LinkParameters kHostLink{.latency_us = 40, .bandwidth_gbps = 1.2};

}  // namespace dynamiccl
