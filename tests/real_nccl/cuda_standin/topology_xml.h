// SPDX-License-Identifier: Apache-2.0
// The file for NCCL_TOPO_FILE that describes one node of a machine.
#pragma once

#include <string>

#include "tests/real_nccl/cuda_standin/machine.h"

namespace cuda_standin {

// NCCL's topology XML, version 1 (NCCL src/graph/xml.cc): NUMA nodes, a PCI switch for each GPU and its
// adapter, the NVLinks. Adapters are named as the instant_net plugin names them, in the order of the GPUs.
std::string TopologyXml(const Machine& machine);

// Name of adapter `index` in the topology and in the network plugin.
std::string AdapterName(int index);

}  // namespace cuda_standin
