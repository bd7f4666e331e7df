// SPDX-License-Identifier: Apache-2.0
// Systems (nodes and network) that were not measured. Their links come from a data sheet, their latencies
// from NCCL's own constants.
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
  // GB/s that a rank has within the node in one direction, as the source states it.
  double intra_gbps = 0;
  // GB/s that one communicator has between nodes.
  double inter_gbps = 0;
  // GB/s of all links between one node and the network together.
  double network_gbps = 0;
  std::string_view source;
};

std::span<const DescribedSystem> DescribedSystems();
// The described system with this name; null for an unknown name.
const DescribedSystem* FindDescribedSystem(std::string_view name);
// The names of all described systems, "dgx2, dgx2-all-links, ...", for help and messages.
std::string DescribedSystemNames();

// Converts a description into a system with Ring, Tree and PAT. Latencies and the shares of the links'
// bandwidth are NCCL's (src/cost_model, NCCL 2.30.7).
System SystemOf(const DescribedSystem& described);
// Returns the described system called `name` or, if there is none, reads the system file at the path `name`.
Result<System> SystemNamed(const std::string& name);

}  // namespace dynamiccl
