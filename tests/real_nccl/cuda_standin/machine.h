// SPDX-License-Identifier: Apache-2.0
// Describes the machine that the stand-in emulates: the GPUs, links and network adapters of one node. The
// description comes from a small text file.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cuda_standin {

// Parts that work on most machines but not on this one. The topology and the device attributes do not show
// them. NCCL learns of them only when it queries or uses them.
struct Lacks {
  bool peer_access = false;        // between GPUs; GeForce cards and virtual machines lack it
  bool multicast_binding = false;  // of memory to a multicast object; needs a running Fabric Manager
  bool fabric_handles = false;     // for memory in an NVLink domain; needs an IMEX channel

  bool operator==(const Lacks&) const = default;
};

struct Machine {
  std::string name;
  int architecture = 0;  // compute capability times ten: 90 is Hopper
  int multiprocessors = 0;
  int shared_memory_bytes = 0;  // the most that a block may opt in to
  int memory_gib = 0;
  int driver_version = 0;      // as cudaDriverGetVersion reports it
  std::vector<int> gpu_buses;  // PCI bus number of each GPU; domain, device and function are 0
  int gpus_per_switch = 1;     // number of neighbours in gpu_buses that share one PCI switch
  int gpus_per_numa_node = 4;
  int gpu_device = 0;  // PCI device number of a GPU; the vendor is NVIDIA
  int gpu_board = 0;
  std::string cpu_vendor;  // "GenuineIntel"; "arm64" for every Arm processor
  int cpu_family = 0;
  int cpu_model = 0;
  std::string pcie_speed;        // as /sys/.../max_link_speed prints it
  int nvlinks_per_gpu = 0;       // links to the NVSwitches; 0 for a machine without NVLink
  int multicast = 0;             // 1 where the NVSwitches can multicast (NVLS)
  int network_mbps = 0;          // speed of one adapter, in Mb/s
  std::vector<int> adapters_at;  // GPUs that have an adapter beside them, ascending
  // A machine file may leave out the keys below.
  // Links of a GPU to its processor. If there are any, GPUs and adapters sit at the processor without a PCI
  // switch.
  int c2c_links = 0;
  // Nodes whose GPUs share NVSwitches (MNNVL). Node N is in the domain N / nvlink_domain_nodes.
  int nvlink_domain_nodes = 0;
  Lacks lacks;
};

// Parses lines of the form "key = value", where '#' starts a comment. Every key but c2c_links,
// nvlink_domain_nodes and lacks must appear, and no key may appear twice. On failure returns nothing, and
// *error says the line or the key and what is wrong.
std::optional<Machine> ParseMachine(const std::string& text, std::string* error);

std::optional<Machine> LoadMachine(const std::string& path, std::string* error);

// Returns the PCI address of a device, such as "0000:18:00.0".
std::string PciAddress(const Machine& machine, int device);

// Returns the device at a PCI address, or -1. It accepts the spellings that NCCL uses: letters in either
// case, and a domain of 4 or 8 digits.
int DeviceAtPciAddress(const Machine& machine, const char* address);

// Returns the machine that CUDA_STANDIN_MACHINE names. Without a readable file it prints a message and ends
// the process with exit code 3: a test on an invented machine would prove nothing.
const Machine& ThisMachine();

}  // namespace cuda_standin
