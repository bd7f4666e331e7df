// SPDX-License-Identifier: Apache-2.0
// A node as the canary shows it to NCCL: the topology file for NCCL, and the description for the CUDA
// stand-in, the library that emulates the node's GPUs. The node is a known machine, a machine file, or a
// topology that a user's NCCL wrote (NCCL_TOPO_DUMP_FILE).
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

// Describes the nodes that `named` stands for. `named` is the name of a machine that the installation knows
// ("dgx_h100"), the path of a machine file (*.machine), or the path of a file that NCCL_TOPO_DUMP_FILE or
// collect_machine.sh wrote. Their content tells these two apart.
//
// Returns one machine. A topology of several hosts, which NCCL writes for an NVLink domain, gives one machine
// for each host, or a single one if the hosts differ only in the GUIDs of their adapters. An error says which
// attribute is missing and how to get it. NCCL would fill a missing attribute from the machine on which the
// canary runs, which is the wrong machine. A text where a number belongs, and an NVLink to a GPU that the
// file does not have, are errors that name the line.
Result<std::vector<DescribedMachine>> DescribeNodes(const Installation& installation,
                                                    const std::string& named);

// Describes one machine by the text of a topology of one host. Errors name `file`; its stem is the machine's
// name.
Result<DescribedMachine> DescribeTopology(const std::string& file, const std::string& text);

// It is an error if there are several nodes and one of them has no adapters, because NCCL would then use the
// network of the machine on which the canary runs. Nodes of one NVLink domain need none.
Status CheckAdapters(const std::vector<DescribedMachine>& machines, int nodes);

// Puts `nodes` neighbouring nodes into one NVLink domain. It is an error if the machine's description states
// another number of nodes in a domain.
Status ShareNvlink(int nodes, DescribedMachine* machine);

// Takes away what does not work on the described machine although its topology and devices say so:
// "peer_access", "multicast_binding" or "fabric_handles". It is an error if the machine does not have it
// anyway, if the machine's own file has a key `lacks`, or if a word is none of these three.
Status TakeAway(const std::vector<std::string>& lacks, DescribedMachine* machine);

}  // namespace dynamiccl
