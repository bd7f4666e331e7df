// SPDX-License-Identifier: Apache-2.0
// What releases of NVIDIA's NCCL choose by themselves on described machines, and from what: the graphs that
// NCCL's search found, its cost tables and its choices. Made by tests/real_nccl without a GPU.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/cost_model/nccl_graph.h"

namespace dynamiccl {

using NcclPair = std::pair<Algorithm, Protocol>;

// One collective at one size.
struct NcclCall {
  uint64_t bytes = 0;       // NCCL's total
  CollectiveConfig choice;  // NCCL's own
  int threads = 0;          // of a channel, as launched
  // Of each of NcclCalls::pairs, microseconds; NaN where NCCL does not offer the pair, or tells no cost.
  std::vector<float> microseconds;
};

// All sizes of one collective, ascending.
struct NcclCalls {
  std::vector<NcclPair> pairs;  // those with a cost at some size
  std::vector<NcclCall> calls;

  // NaN where the pair has none.
  float Cost(const NcclCall& call, NcclPair pair) const;
};
bool operator==(const NcclCalls& a, const NcclCalls& b);  // NaN equals NaN

struct NcclWorld {
  std::string machine;  // "dgx_h100"
  int nodes = 1;
  int ranks_per_node = 1;

  int ranks() const { return nodes * ranks_per_node; }
  std::string text() const;  // "dgx_h100 2x8"
  auto operator<=>(const NcclWorld&) const = default;
};

// One communicator of all ranks of a world.
struct NcclCommunicator {
  int channels = 0;
  int nvls_channels = 0;
  std::map<Algorithm, NcclGraph> graphs;  // those that were found
  std::array<NcclCalls, kTunableCollectives> collectives;

  bool operator==(const NcclCommunicator&) const = default;
};

struct NcclMachine {
  std::string description;  // "DGX H100"
  int architecture = 0;     // compute capability times ten
  std::string cpu_vendor;   // "GenuineIntel"

  bool operator==(const NcclMachine&) const = default;
};

struct NcclReleaseChoices {
  // ncclTunerConstants_v5_t as the release hands it to a tuner, member by member; empty where it does not.
  std::vector<double> constants;
  std::map<NcclWorld, NcclCommunicator> worlds;

  bool operator==(const NcclReleaseChoices&) const = default;
};

struct NcclChoices {
  std::map<std::string, NcclMachine> machines;
  std::map<std::string, NcclReleaseChoices> releases;  // "2.28.9"

  bool operator==(const NcclChoices&) const = default;
};

// "2.9.8" before "2.28.9": the releases in the order of their numbers.
std::vector<std::string> ReleasesInOrder(const NcclChoices& choices);

}  // namespace dynamiccl
