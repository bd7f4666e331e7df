// SPDX-License-Identifier: Apache-2.0
// A training job as the event-driven simulator sees it: what every rank does in order, which ranks form
// communicators, and what disturbs them. Times are int64 nanoseconds from 0, when every rank begins.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

// Holds what one collective asks of the links. Undisturbed it takes latency_ns + transfer_ns from the arrival
// of its last rank.
struct TransferDemand {
  int64_t latency_ns = 0;    // does not depend on what else is on the links
  int64_t transfer_ns = 0;   // time of the transfer at full speed
  double port_bytes = 0;     // sent by each member through its own port
  double network_bytes = 0;  // leaving each node of the communicator; 0 inside one node

  friend bool operator==(const TransferDemand&, const TransferDemand&) = default;
};

// Describes one collective in a rank's program.
struct SimulatedCollective {
  size_t layout = 0;  // it runs on the rank's communicator in SimulatedJob::layouts[layout]
  TransferDemand demand;
  // The number of an earlier collective of the program whose result this one needs: on each rank this
  // collective arrives no earlier than the end of the other one, for which the rank does not wait. -1: none.
  int64_t after = -1;
};

// Says what a rank does next. `value` is the action's argument.
enum class ActionKind : uint8_t {
  kCompute,  // computes for `value` nanoseconds
  kIssue,    // collective number `value` may run from now on, after the earlier ones of its communicator
  kWait,     // waits until collective number `value` has ended
};

// One step of a rank's program.
struct Action {
  ActionKind kind = ActionKind::kCompute;
  int64_t value = 0;
};

// A rank's actions in program order. Every collective is issued once, in the order of its number within a
// layout.
struct RankProgram {
  std::vector<SimulatedCollective> collectives;
  std::vector<Action> actions;
};

// A division of the ranks into communicators of one kind, for example the tensor-parallel groups.
struct CommunicatorLayout {
  std::vector<int32_t> communicator_of_rank;  // -1: in no communicator
};

// A rank that is slow or late.
struct Straggler {
  int32_t rank = 0;
  double compute_factor = 1;  // factor on every compute action, above 0 and at most 1e6
  int64_t late_ns = 0;        // how much later the rank begins
};

// Traffic of others on the network links of a node, or of all nodes.
struct NetworkLoad {
  int64_t from_ns = 0;
  int64_t until_ns = INT64_MAX;
  int32_t node = -1;  // -1: all nodes
  double share = 0;   // of the capacity, from 0 to 0.999999; of several loads the last one counts
};

// Describes a whole job. It is a plain value that the simulation only reads.
struct SimulatedJob {
  int32_t n_ranks = 1;
  int32_t ranks_per_node = 1;  // neighbouring ranks share a node; the last node may have fewer
  double port_gbps = 1;        // speed of each rank's port in one direction, 1e9 bytes per second
  double network_gbps = 1;     // the same for each node, over all its links to other nodes
  std::vector<RankProgram> programs;
  std::vector<uint32_t> program_of_rank;  // empty: all ranks run the first program
  std::vector<CommunicatorLayout> layouts;

  std::vector<Straggler> stragglers;
  std::vector<NetworkLoad> loads;
  // Every compute action of every rank takes longer by a random share between 0 and this, evenly distributed.
  double compute_jitter = 0;
  // A collective in flight takes this share of a core from its rank's computing, because the ranks' threads
  // fill the cores of a host. It is 0 on accelerators.
  double host_share = 0;
  uint64_t seed = 1;

  int32_t Nodes() const { return (n_ranks + ranks_per_node - 1) / ranks_per_node; }
  const RankProgram& ProgramOf(int32_t rank) const {
    return programs[program_of_rank.empty() ? 0 : program_of_rank[static_cast<size_t>(rank)]];
  }
};

// Returns kInvalidArgument if a value is out of its range, or if an action refers to something that does not
// exist. The error names the place of the first such fault.
Status Check(const SimulatedJob& job);

}  // namespace dynamiccl
