// SPDX-License-Identifier: Apache-2.0
// Writes the inventory of a node in the words of NCCL's topology file, as NCCL itself would find the node.
#pragma once

#include <string>

#include "src/base/status.h"
#include "tools/canary/machine_inventory.h"

namespace dynamiccl {

// The XML of NCCL_TOPO_FILE. The error names every attribute that the inventory lacks: none is taken from the
// machine that this runs on.
Result<std::string> TopologyOfInventory(const std::string& name, const MachineInventory& inventory);

}  // namespace dynamiccl
