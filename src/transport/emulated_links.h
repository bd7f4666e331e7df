// SPDX-License-Identifier: Apache-2.0
// The emulated links of a communicator: which pairs of ranks talk over a shaped link, and the objects that
// delay their messages. Communicators that are split from it share these links and so load each other.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "src/collective/fabric.h"
#include "src/transport/segment.h"
#include "src/transport/shaped_link.h"
#include "src/transport/topology.h"

namespace dynamiccl {

// Maps ranks to nodes and makes the ShapedLink of each pair. "Rank" here is a rank of the communicator that
// was made from a unique id. Shared by that communicator, its split children and the link server
// (shared_ptr); const functions may be called from any thread. State that changes lies in the segment of rank
// 0.
class EmulatedLinks {
 public:
  // `states` is the segment of rank 0, which holds the links' state for all ranks; null when there is one
  // rank.
  EmulatedLinks(Topology topology, std::vector<int> node_of_rank, std::shared_ptr<Segment> states);

  int n_ranks() const { return static_cast<int>(node_of_rank_.size()); }
  int node(int rank) const { return node_of_rank_[static_cast<size_t>(rank)]; }
  const Topology& topology() const { return topology_; }
  // Returns whether messages between the two ranks are delayed.
  bool shaped(int from, int to) const;
  // Returns whether any two ranks of this job have a shaped link.
  bool any_shaped() const;

  // Returns the link for messages of one channel; null when it is not shaped. Between nodes it is rail
  // `channel` modulo the number of rails, and all ranks of a node share the rails. Inside a node every two
  // ranks have a link of their own.
  std::unique_ptr<ShapedLink> Link(int from, int to, int channel) const;

  // The nominal links between the nodes of these ranks, as the planner sees them: one number for each class,
  // that of the slowest link. Load, degradation and events are not in it.
  Fabric FabricOf(const std::vector<int>& ranks, int max_channels) const;

  // Records that a rank begins collective launch `call` of the communicator that was made from the unique id.
  // Events of the topology may start at a call.
  void NoteCall(int64_t call) const;

  // One direction of one rail, for code that changes or shows links. Inside a node there is one for each two
  // ranks: `from_node` equals `to_node`, and `rail` is 0.
  struct Wire {
    int from_node;
    int to_node;
    int rail;
    LinkState* state;
    ShapedLink link;
  };
  // Calls `visit` for every shaped wire: first those between nodes, then those inside nodes.
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

// The planner's numbers for a link that is not shaped. The software latency of shared memory is part of the
// planner's constants, so latency is 0; the bandwidth (8e9 bytes a second) is what one core copies through
// slots that stay in its second-level cache.
inline constexpr LinkParameters kUnshapedLink{.latency_us = 0, .bandwidth_gbps = 8};

// The planner's numbers for TCP between hosts: 10 Gb/s Ethernet with the relay's two extra wake-ups in each
// direction. They are constants, not measurements, because they must be equal on all ranks.
inline constexpr LinkParameters kHostLink{.latency_us = 40, .bandwidth_gbps = 1.2};

}  // namespace dynamiccl
