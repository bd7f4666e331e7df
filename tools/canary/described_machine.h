// SPDX-License-Identifier: Apache-2.0
// A node as the canary shows it to NCCL: NCCL's own topology file, and what the CUDA stand-in must know
// beside it. It comes from a machine by name, from a machine file, or from a user's NCCL_TOPO_DUMP_FILE.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

struct DescribedMachine {
  std::string name;      // as the user named it, without folder and ending
  std::string stand_in;  // text of a machine file, tests/real_nccl/machines/dgx_a100.machine has the keys
  std::string topology;  // text for NCCL_TOPO_FILE
  int gpus = 0;          // of a node
  int adapters = 0;      // of a node, CollNet devices left out
  int architecture = 0;  // compute capability times ten, of the first GPU
  int nvlink_domain_nodes = 0;  // nodes whose GPUs share NVSwitches; 0: each has its own, or none
};

// `named` is a name that the installation has ("dgx_h100"), the path of a machine file (*.machine) or of a
// topology that NCCL wrote (NCCL_TOPO_DUMP_FILE, any other ending), or of what collect_machine.sh wrote,
// which is told by its content. Errors say what is missing in the file and how to get it: NCCL fills
// attributes that a topology lacks from the machine that it runs on, which is not the one described, so all
// that decides must be there. A topology of several hosts (NCCL writes one of a whole NVLink domain) gives as
// many machines, or one where they are alike but for their adapters' GUIDs; anything else gives one.
Result<std::vector<DescribedMachine>> DescribeNodes(const Installation& installation,
                                                    const std::string& named);

// One machine from the text of a topology of one host. Errors name `file`, whose stem is the machine's name.
Result<DescribedMachine> DescribeTopology(const std::string& file, const std::string& text);

// Puts `nodes` neighbouring nodes into one NVLink domain. An error where the machine says something else.
Status ShareNvlink(int nodes, DescribedMachine* machine);

}  // namespace dynamiccl
