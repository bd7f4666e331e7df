// SPDX-License-Identifier: Apache-2.0
// Systems that were not measured but are described by links from a data sheet and NCCL's own constants.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/simulator/system.h"

namespace dynamiccl {

// A kind of node and network. Bandwidths are GB/s.
struct DescribedSystem {
  std::string_view name;
  int ranks_per_node = 1;
  // Bandwidth of a rank in one direction, as the source states it.
  double intra_gbps = 0;
  // Bandwidth that one communicator gets between nodes.
  double inter_gbps = 0;
  // Bandwidth of all links between a node and the network together.
  double network_gbps = 0;
  std::string_view source;
};

std::span<const DescribedSystem> DescribedSystems();
// The described system with this name; null for an unknown name.
const DescribedSystem* FindDescribedSystem(std::string_view name);
// "dgx2, dgx2-all-links, ...", for help and messages.
std::string DescribedSystemNames();

// Ring, Tree and PAT with NCCL's latencies and its shares of the links (src/cost_model, NCCL 2.30.7).
System SystemOf(const DescribedSystem& described);
// Returns the described system called `name` or, if there is none, reads the system file at the path `name`.
Result<System> SystemNamed(const std::string& name);

}  // namespace dynamiccl
