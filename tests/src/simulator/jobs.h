// SPDX-License-Identifier: Apache-2.0
// Small jobs for the simulator's tests.
#pragma once

#include <random>

#include "src/simulator/simulated_job.h"

namespace dynamiccl {

inline Action Compute(int64_t nanoseconds) {
  return {ActionKind::kCompute, nanoseconds};
}
inline Action Issue(int64_t collective) {
  return {ActionKind::kIssue, collective};
}
inline Action Wait(int64_t collective) {
  return {ActionKind::kWait, collective};
}

// Returns a collective that runs after collective number `after`.
inline SimulatedCollective After(int64_t after, SimulatedCollective collective) {
  collective.after = after;
  return collective;
}

// Returns a job whose ranks share one communicator. `port` and `network` are in bytes per nanosecond.
inline SimulatedJob JobOfAll(int ranks, int ranks_per_node, RankProgram program, double port = 100,
                             double network = 10) {
  SimulatedJob job;
  job.n_ranks = ranks;
  job.ranks_per_node = ranks_per_node;
  job.port_gbps = port;
  job.network_gbps = network;
  job.programs = {std::move(program)};
  job.layouts = {{std::vector<int32_t>(static_cast<size_t>(ranks), 0)}};
  return job;
}

// Neighbours groups `size` consecutive ranks. Across groups the ranks with the same position in these groups.
inline CommunicatorLayout Neighbours(int ranks, int size) {
  CommunicatorLayout layout;
  for (int rank = 0; rank < ranks; ++rank) layout.communicator_of_rank.push_back(rank / size);
  return layout;
}
inline CommunicatorLayout Across(int ranks, int size) {
  CommunicatorLayout layout;
  for (int rank = 0; rank < ranks; ++rank) layout.communicator_of_rank.push_back(rank % size);
  return layout;
}

// Returns a program of computing and collectives of several layouts. It waits for some of them at once and
// for some later. Equal seeds give equal programs.
inline RankProgram RandomProgram(uint64_t seed, size_t layouts, int collectives) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  RankProgram program;
  std::vector<int64_t> open;
  for (int64_t i = 0; i < collectives; ++i) {
    program.actions.push_back(Compute(below(3000)));
    const int64_t transfer = 1 + below(5000);
    const double used = static_cast<double>(1 + below(8));
    const size_t layout = static_cast<size_t>(below(static_cast<int64_t>(layouts)));
    program.collectives.push_back({layout,
                                   {below(300), transfer, used * 4 * static_cast<double>(transfer),
                                    used * static_cast<double>(transfer)}});
    program.actions.push_back(Issue(i));
    if (below(3) == 0)
      program.actions.push_back(Wait(i));
    else
      open.push_back(i);
  }
  for (const int64_t i : open) program.actions.push_back(Wait(i));
  return program;
}

}  // namespace dynamiccl
