// SPDX-License-Identifier: Apache-2.0
// A description of a node that tools/canary/collect_machine.sh wrote without NCCL: PCI devices, adapters,
// GPUs and NVLinks. docs/formats/machine_inventory.md has the grammar.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

// A PCI device. Values are texts of the kernel; "-" where the kernel gives none.
struct InventoryDevice {
  std::string place;  // "pci0000:00/0000:00:01.0/0000:01:00.0"
  std::string pci_class, vendor, device, subsystem_vendor, subsystem_device;
  std::string max_link_speed, max_link_width;
  std::string numa_node;

  std::string bus_id() const;  // "0000:01:00.0"
};

struct InventoryAdapter {
  std::string name;   // "mlx5_0"
  std::string place;  // of its PCI device
  int port = 1;
  int mbps = 0;  // 0: unknown
  std::string guid;
};

struct InventoryGpu {
  int index = 0;
  std::string bus_id;
  int architecture = 0;  // compute capability times ten; 0: unknown
};

struct MachineInventory {
  std::string host;
  std::string architecture;  // "x86_64"
  std::string gdr = "unknown";
  std::string cpu_vendor = "-", cpu_family = "-", cpu_model = "-";
  std::map<std::string, InventoryDevice> devices;  // by place
  // The adapters that NCCL would use: the active InfiniBand ports; if there are none, the network interfaces
  // that are up.
  std::vector<InventoryAdapter> adapters;
  std::vector<InventoryGpu> gpus;  // that the driver named, in its order
  // links[a][b] is the number of NVLinks between GPUs a and b, in the driver's order. Empty if the driver did
  // not show it.
  std::vector<std::vector<int>> links;
};

bool IsMachineInventory(std::string_view text);

// Parses the text of the file `name`. A file that is cut, damaged or of a later version is an error, which
// names the place and says what to do.
Result<MachineInventory> ParseMachineInventory(const std::string& name, const std::string& text);

// POSIX cksum.
uint32_t PosixChecksum(std::string_view bytes);

}  // namespace dynamiccl
