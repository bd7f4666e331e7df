// SPDX-License-Identifier: Apache-2.0
// The emulated links of a communicator: which pairs of ranks have one, and the objects that delay their
// messages. Communicators split from this one share its links, so their messages delay each other.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "src/collective/fabric.h"
#include "src/transport/segment.h"
#include "src/transport/shaped_link.h"
#include "src/transport/topology.h"

namespace dynamiccl {

// Maps ranks to nodes and makes the ShapedLink (shaped_link.h) between two ranks. A "rank" here is a rank of
// the communicator that was made from a unique id. That communicator, its split children and the link server
// share this object by shared_ptr. Any thread may call the const functions. State that changes lies in the
// segment of rank 0.
class EmulatedLinks {
 public:
  // `states` is the segment of rank 0, which holds the state of all links. It is null when there is one rank.
  EmulatedLinks(Topology topology, std::vector<int> node_of_rank, std::shared_ptr<Segment> states);

  int n_ranks() const { return static_cast<int>(node_of_rank_.size()); }
  int node(int rank) const { return node_of_rank_[static_cast<size_t>(rank)]; }
  const Topology& topology() const { return topology_; }
  // Returns whether the link between the two ranks is emulated, so that messages are delayed.
  bool shaped(int from, int to) const;
  // Returns whether at least one link between ranks of this job is emulated.
  bool any_shaped() const;

  // Returns the link for messages of one channel; null when the link is not emulated. Between nodes this is
  // rail number `channel` modulo the number of rails, and all ranks of a node share the rails. Inside a node
  // every two ranks have a link of their own.
  std::unique_ptr<ShapedLink> Link(int from, int to, int channel) const;

  // Returns the nominal links between the nodes of these ranks, for the planner. Each class of links has the
  // numbers of its slowest link. Load, degradation and events of the topology do not change them.
  Fabric FabricOf(const std::vector<int>& ranks, int max_channels) const;

  // Records that a rank begins collective launch number `call` of the communicator that was made from the
  // unique id. Events of the topology can start at such a number.
  void NoteCall(int64_t call) const;

  // One direction of one rail, for code that changes or shows links. Inside a node there is one wire for
  // every two ranks: `from_node` equals `to_node`, and `rail` is 0.
  struct Wire {
    int from_node;
    int to_node;
    int rail;
    LinkState* state;
    ShapedLink link;
  };
  // Calls `visit` for every emulated wire: first those between nodes, then those inside nodes.
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

// The planner's numbers for a link that is not emulated. Latency is 0, because the planner's constants
// already contain the software latency of shared memory. The bandwidth is 8e9 bytes per second, the rate at
// which one core copies data through slots that stay in its second-level cache.
inline constexpr LinkParameters kUnshapedLink{.latency_us = 0, .bandwidth_gbps = 8};

// The planner's numbers for TCP between hosts: 10 Gb/s Ethernet plus two wake-ups of the relay in each
// direction. They are constants, not measurements, because they must be equal on all ranks.
inline constexpr LinkParameters kHostLink{.latency_us = 40, .bandwidth_gbps = 1.2};

}  // namespace dynamiccl
