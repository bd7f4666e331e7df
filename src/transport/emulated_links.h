// SPDX-License-Identifier: Apache-2.0
// The shaped links of a communicator and of all that are split from it: they load the same links.
#pragma once

#include <memory>
#include <vector>

#include "src/transport/segment.h"
#include "src/transport/shaped_link.h"
#include "src/transport/topology.h"

namespace dynamiccl {

// Ranks here are those of the communicator that was made from a unique id. Shared with split communicators:
// shared_ptr.
class EmulatedLinks {
 public:
  // `states` holds the links' state for all ranks: the segment of rank 0, null for one rank.
  EmulatedLinks(Topology topology, std::vector<int> node_of_rank, std::shared_ptr<Segment> states)
      : topology_(std::move(topology)), node_of_rank_(std::move(node_of_rank)), states_(std::move(states)) {}

  int node(int rank) const { return node_of_rank_[static_cast<size_t>(rank)]; }
  // Null when messages from one rank to the other are not shaped. Ranks of a node share the links to other
  // nodes; inside a node every two ranks have a link of their own.
  std::unique_ptr<ShapedLink> Link(int from, int to) const;
  // The links between the nodes of these ranks as one number each: the slowest of each class.
  Fabric FabricOf(const std::vector<int>& ranks, int max_channels) const;

 private:
  Topology topology_;
  std::vector<int> node_of_rank_;
  std::shared_ptr<Segment> states_;
};

// What stands for a link that is not shaped: shared memory's software latency is part of the planner's
// constants, its bandwidth is what one core copies through slots that stay in the second-level cache.
inline constexpr LinkParameters kUnshapedLink{.latency_us = 0, .bandwidth_gbps = 8};

}  // namespace dynamiccl
