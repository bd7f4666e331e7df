// SPDX-License-Identifier: Apache-2.0
// What machine the stand-in pretends to be: one node's GPUs, links and network adapters, read from a small
// text file.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cuda_standin {

// The parts that work on most machines and not on this one. The topology and the devices' attributes do not
// show them: NCCL finds out when it asks or tries.
struct Lacks {
  bool peer_access = false;        // between GPUs: GeForce cards, virtual machines
  bool multicast_binding = false;  // of memory to a multicast object: needs a running Fabric Manager
  bool fabric_handles = false;     // for memory in an NVLink domain: needs an IMEX channel

  bool operator==(const Lacks&) const = default;
};

struct Machine {
  std::string name;
  int architecture = 0;  // compute capability times ten: 90 is Hopper
  int multiprocessors = 0;
  int shared_memory_bytes = 0;  // largest a block may opt in to
  int memory_gib = 0;
  int driver_version = 0;      // as cudaDriverGetVersion reports it
  std::vector<int> gpu_buses;  // PCI bus number of each GPU; function and device are 0, the domain is 0
  int gpus_per_switch = 1;     // neighbours in gpu_buses that share a PCI switch
  int gpus_per_numa_node = 4;
  int gpu_device = 0;  // PCI identity of a GPU, without the vendor, NVIDIA
  int gpu_board = 0;
  std::string cpu_vendor;  // "GenuineIntel"; "arm64" for a processor of that architecture
  int cpu_family = 0;
  int cpu_model = 0;
  std::string pcie_speed;        // as /sys/.../max_link_speed words it
  int nvlinks_per_gpu = 0;       // to the NVSwitch; 0 for a PCIe box
  int multicast = 0;             // 1 where NVSwitch can multicast (NVLS)
  int network_mbps = 0;          // of one adapter
  std::vector<int> adapters_at;  // GPUs with an adapter beside them, ascending
  // May be left out: 0 where a machine has none.
  int c2c_links = 0;            // of a GPU to its processor; then GPUs and adapters sit at the processor
  int nvlink_domain_nodes = 0;  // nodes whose GPUs share NVSwitches (MNNVL): node N is in domain N / this
  Lacks lacks;
};

// "key = value" lines, '#' starts a comment, every key but c2c_links, nvlink_domain_nodes and lacks must
// appear, and none twice. On failure *error says the line and what is wrong.
std::optional<Machine> ParseMachine(const std::string& text, std::string* error);

std::optional<Machine> LoadMachine(const std::string& path, std::string* error);

// "0000:18:00.0"
std::string PciAddress(const Machine& machine, int device);

// The device at a PCI address in any of the spellings NCCL uses (case, 4- or 8-digit domain), or -1.
int DeviceAtPciAddress(const Machine& machine, const char* address);

// The machine named by CUDA_STANDIN_MACHINE. Ends the process with a message when there is none: a test that
// ran on made-up devices would prove nothing.
const Machine& ThisMachine();

}  // namespace cuda_standin
