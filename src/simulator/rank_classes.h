// SPDX-License-Identifier: Apache-2.0
// Finds which ranks of a job behave alike. They do the same at the same time, so one of them is simulated for
// all. The classes are the coarsest equitable partition of ranks, communicators and nodes, found by colour
// refinement.
#pragma once

#include <cstdint>
#include <vector>

#include "src/simulator/simulated_job.h"

namespace dynamiccl {

// Stands for ranks that behave alike.
struct RankClass {
  int32_t first_rank = 0;  // the one that is simulated for all
  int32_t ranks = 0;
  size_t node_class = 0;
  std::vector<int64_t> communicator_class;  // by layout: class of the communicator; -1: in no communicator
};

// Stands for communicators of one layout with alike members on alike nodes.
struct CommunicatorClass {
  size_t layout = 0;
  int32_t communicators = 0;
  int32_t ranks = 0;                 // number of ranks of each communicator
  int32_t nodes = 0;                 // number of nodes that each communicator spans
  std::vector<size_t> rank_classes;  // classes of the members, each class once
};

// Nodes that are loaded alike.
struct NodeClass {
  int32_t nodes = 0;
  int32_t first_node = 0;
  // For each class of communicators: its index, and how many of its communicators have a member on one node
  // of this class.
  std::vector<std::pair<size_t, int32_t>> communicators;
};

// Holds the partition of a job into classes.
struct JobClasses {
  std::vector<uint32_t> class_of_rank;
  std::vector<RankClass> ranks;
  std::vector<CommunicatorClass> communicators;
  std::vector<NodeClass> nodes;
};

// Returns the classes of a job. `apart`: every rank is a class of its own. The same holds for every job with
// jitter.
JobClasses ClassesOf(const SimulatedJob& job, bool apart = false);

}  // namespace dynamiccl
