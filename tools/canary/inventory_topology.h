// SPDX-License-Identifier: Apache-2.0
// Converts the inventory of a node into a topology file of NCCL, as NCCL itself would write it on that node.
#pragma once

#include <string>

#include "src/base/status.h"
#include "tools/canary/machine_inventory.h"

namespace dynamiccl {

// Returns the XML for NCCL_TOPO_FILE. If the inventory lacks attributes, the error names each of them; none
// is filled from the machine on which the canary runs.
Result<std::string> TopologyOfInventory(const std::string& name, const MachineInventory& inventory);

}  // namespace dynamiccl
