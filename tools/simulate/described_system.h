// SPDX-License-Identifier: Apache-2.0
// Systems that are described, not measured: NCCL's own constants over links of a data sheet.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/simulator/system.h"

namespace dynamiccl {

struct DescribedSystem {
  std::string_view name;
  int ranks_per_node = 1;
  double intra_gbps = 0;    // of a rank, one direction, as the source states it
  double inter_gbps = 0;    // that one communicator gets between nodes
  double network_gbps = 0;  // of a node, all its links together
  std::string_view source;
};

std::span<const DescribedSystem> DescribedSystems();
// nullptr: there is none of this name.
const DescribedSystem* FindDescribedSystem(std::string_view name);
// "dgx2, dgx-a100, ...".
std::string DescribedSystemNames();

// Ring, Tree and PAT with NCCL's latencies and its shares of the links (src/cost_model, NCCL 2.30.7).
System SystemOf(const DescribedSystem& described);
// Of a described system's name, or of a system file.
Result<System> SystemNamed(const std::string& name);

}  // namespace dynamiccl
