// SPDX-License-Identifier: Apache-2.0
// A training job as the event-driven simulator sees it: what every rank does in order, which ranks form
// communicators, and what disturbs them. Times are int64 nanoseconds, from 0 when every rank begins.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

// What one collective asks of the links. Undisturbed it takes latency_ns + transfer_ns from the arrival of
// its last rank.
struct TransferDemand {
  int64_t latency_ns = 0;    // passes whatever else is on the links
  int64_t transfer_ns = 0;   // at full speed
  double port_bytes = 0;     // that each member sends through its own port
  double network_bytes = 0;  // that leave each node of the communicator; 0 inside one node

  friend bool operator==(const TransferDemand&, const TransferDemand&) = default;
};

struct SimulatedCollective {
  size_t layout = 0;  // the rank's communicator of SimulatedJob::layouts[layout]
  TransferDemand demand;
};

enum class ActionKind : uint8_t {
  kCompute,  // `value` nanoseconds
  kIssue,    // collective number `value` may run from now on, after the earlier ones of its communicator
  kWait,     // until collective number `value` has ended
};

struct Action {
  ActionKind kind = ActionKind::kCompute;
  int64_t value = 0;
};

// In program order. Every collective is issued once, in the order of its number within a layout.
struct RankProgram {
  std::vector<SimulatedCollective> collectives;
  std::vector<Action> actions;
};

// A division of the ranks into communicators, all of one kind: the tensor-parallel groups, for example.
struct CommunicatorLayout {
  std::vector<int32_t> communicator_of_rank;  // -1: in none
};

struct Straggler {
  int32_t rank = 0;
  double compute_factor = 1;  // of every compute action
  int64_t late_ns = 0;        // it begins that much later
};

// Strangers on the network links of a node, or of all nodes.
struct NetworkLoad {
  int64_t from_ns = 0;
  int64_t until_ns = INT64_MAX;
  int32_t node = -1;  // -1: all of them
  double share = 0;   // of the capacity, at least 0 and below 1; of several at once the last one counts
};

struct SimulatedJob {
  int32_t n_ranks = 1;
  int32_t ranks_per_node = 1;  // neighbours; the last node may have fewer
  double port_gbps = 1;        // of each rank, one direction: 10^9 bytes a second
  double network_gbps = 1;     // of each node, one direction, all its links to other nodes together
  std::vector<RankProgram> programs;
  std::vector<uint32_t> program_of_rank;  // empty: all run the first
  std::vector<CommunicatorLayout> layouts;

  std::vector<Straggler> stragglers;
  std::vector<NetworkLoad> loads;
  // Every compute action of every rank takes longer by a share that is evenly spread from 0 to this.
  double compute_jitter = 0;
  uint64_t seed = 1;

  int32_t Nodes() const { return (n_ranks + ranks_per_node - 1) / ranks_per_node; }
  const RankProgram& ProgramOf(int32_t rank) const {
    return programs[program_of_rank.empty() ? 0 : program_of_rank[static_cast<size_t>(rank)]];
  }
};

// kInvalidArgument with the place of the first value that is out of its range, or of an action that refers to
// what is not there.
Status Check(const SimulatedJob& job);

}  // namespace dynamiccl
