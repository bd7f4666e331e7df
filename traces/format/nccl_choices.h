// SPDX-License-Identifier: Apache-2.0
// The configs that releases of NVIDIA's NCCL choose on described machines, and the data from which the
// choices follow: the graphs that NCCL's search found and its cost tables. tests/real_nccl produces them
// without a GPU. The cost model is checked against them.
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

// An algorithm with a protocol.
using NcclPair = std::pair<Algorithm, Protocol>;

// NCCL's choice for one collective at one size.
struct NcclCall {
  uint64_t bytes = 0;       // NCCL's total
  CollectiveConfig choice;  // NCCL's own choice
  int threads = 0;          // threads of each channel, as launched
  // NCCL's predicted time for each of NcclCalls::pairs. NaN if NCCL does not offer the pair or gives no cost.
  std::vector<float> microseconds;
};

// All sizes of one collective, ascending.
struct NcclCalls {
  std::vector<NcclPair> pairs;  // pairs that have a cost at some size
  std::vector<NcclCall> calls;

  // The cost of a pair for one of `calls`; NaN where it has none.
  float Cost(const NcclCall& call, NcclPair pair) const;
};
// Two costs that are both NaN count as equal.
bool operator==(const NcclCalls& a, const NcclCalls& b);

// A described machine, and how many of its nodes a job uses.
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
  std::map<Algorithm, NcclGraph> graphs;  // graphs that NCCL's search found
  std::array<NcclCalls, kTunableCollectives> collectives;

  bool operator==(const NcclCommunicator&) const = default;
};

// A machine as it was described to NCCL.
struct NcclMachine {
  std::string description;  // "DGX H100"
  int architecture = 0;     // compute capability times ten
  std::string cpu_vendor;   // "GenuineIntel"

  bool operator==(const NcclMachine&) const = default;
};

// Everything that one release chose.
struct NcclReleaseChoices {
  // The members of ncclTunerConstants_v5_t in order, as the release passes them to a tuner; empty if the
  // release passes none.
  std::vector<double> constants;
  std::map<NcclWorld, NcclCommunicator> worlds;

  bool operator==(const NcclReleaseChoices&) const = default;
};

// All machines and releases, each by its name.
struct NcclChoices {
  std::map<std::string, NcclMachine> machines;
  std::map<std::string, NcclReleaseChoices> releases;  // "2.28.9"

  bool operator==(const NcclChoices&) const = default;
};

// The releases in the order of their numbers: "2.9.8" before "2.28.9".
std::vector<std::string> ReleasesInOrder(const NcclChoices& choices);

}  // namespace dynamiccl
