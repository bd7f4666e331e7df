// SPDX-License-Identifier: Apache-2.0
// Makes the file for NCCL_TOPO_FILE that describes one node of a machine.
#pragma once

#include <string>

#include "tests/real_nccl/cuda_standin/machine.h"

namespace cuda_standin {

// Returns NCCL's topology XML, version 1 (NCCL src/graph/xml.cc): NUMA nodes, PCI switches, GPUs, adapters
// and NVLinks. Adapters have the names that the plugin instant_net gives them, in the order of the GPUs.
std::string TopologyXml(const Machine& machine);

// Returns the name of adapter `index` in the topology and in the plugin instant_net.
std::string AdapterName(int index);

}  // namespace cuda_standin
