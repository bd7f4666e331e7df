// SPDX-License-Identifier: Apache-2.0
// Takes the model's inputs from the data set of NCCL's choices (traces/nccl_choices).
#pragma once

#include <cstdio>
#include <cstring>
#include <string>

#include "src/cost_model/nccl_costs.h"
#include "traces/format/nccl_choices.h"

namespace dynamiccl {

// Returns 22809 for "2.28.9".
inline int ReleaseNumber(const std::string& release) {
  int major = 0, minor = 0, patch = 0;
  std::sscanf(release.c_str(), "%d.%d.%d", &major, &minor, &patch);
  return major * 10000 + minor * 100 + patch;
}

// Returns the release's own constants. Releases up to 2.27 have none, and 2.31.2 has only zeros. They get
// those of the nearest release, or of the older one of two.
inline ncclTunerConstants_v5_t ConstantsOf(const NcclChoices& choices, const std::string& release) {
  ncclTunerConstants_v5_t constants = {};
  int best = 1 << 30;
  for (const std::string& name : ReleasesInOrder(choices)) {
    const std::vector<double>& numbers = choices.releases.at(name).constants;
    const int distance = std::abs(ReleaseNumber(name) - ReleaseNumber(release));
    if (numbers.size() * sizeof(double) != sizeof(constants) || distance >= best) continue;
    best = distance;
    std::memcpy(&constants, numbers.data(), sizeof(constants));
  }
  return constants;
}

inline NcclCommunicatorFacts FactsOf(const NcclChoices& choices, const std::string& release,
                                     const NcclWorld& world) {
  const NcclCommunicator& communicator = choices.releases.at(release).worlds.at(world);
  const NcclMachine& machine = choices.machines.at(world.machine);
  return {.release = ReleaseNumber(release),
          .n_ranks = world.ranks(),
          .n_nodes = world.nodes,
          .channels = communicator.channels,
          .nvls_channels = communicator.nvls_channels,
          .architecture = machine.architecture,
          .amd_cpu = machine.cpu_vendor == "AuthenticAMD",
          .graphs = communicator.graphs,
          .constants = ConstantsOf(choices, release)};
}

}  // namespace dynamiccl
