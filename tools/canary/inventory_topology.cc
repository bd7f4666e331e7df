// SPDX-License-Identifier: Apache-2.0
// Follows NCCL's own search for devices (ncclTopoGetXmlFromSys). NCCL climbs from each GPU and adapter: it
// leaves out the port above a device, takes the bridge above that port, and ends at the processor of the
// device's NUMA node. The speed of a device's link is the lower of the device's speed and that of the port
// above it.
#include "tools/canary/inventory_topology.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "tests/real_nccl/cuda_standin/xml_tree.h"

namespace dynamiccl {
namespace {

using cuda_standin::XmlElement;

constexpr std::string_view kNvSwitchClass = "0x0680";
constexpr const char* kNvidia = "0x10de";
// The most NVLinks that a GPU has; H100 and B200 have this many.
constexpr int kMaxLinks = 18;

std::string ParentOf(const std::string& place) {
  const size_t slash = place.rfind('/');
  return slash == std::string::npos ? "" : place.substr(0, slash);
}

// True if the last part of the path is a PCI address such as "0000:01:00.0". "pci0000:00" and "virtio2" are
// none.
bool IsPciPlace(const std::string& place) {
  const std::string last = place.substr(place.rfind('/') + 1);
  return last.size() == 12 && last[4] == ':' && last[7] == ':' && last[10] == '.';
}

// Converts the processor family of /proc/cpuinfo into NCCL's number. NCCL shifts the extended family by four
// bits before it adds it, Linux does not.
std::string FamilyForNccl(const std::string& family) {
  const int number = std::atoi(family.c_str());
  return number < 15 ? family : std::to_string(15 + ((number - 15) << 4));
}

// Converts the architecture of `uname -m` into NCCL's word.
std::string ArchitectureForNccl(const std::string& machine) {
  if (machine == "aarch64") return "arm64";
  return machine.starts_with("ppc64") ? "ppc64" : machine;
}

class TopologyWriter {
 public:
  TopologyWriter(std::string name, const MachineInventory& inventory)
      : name_(std::move(name)), inventory_(inventory) {}

  Result<std::string> Write() {
    root_.tag = "system";
    root_.Set("version", "1");
    if (inventory_.gpus.empty()) AddGpusWithoutDriver();
    for (const InventoryGpu& gpu : inventory_.gpus) AddGpu(gpu);
    for (size_t i = 0; i < inventory_.adapters.size(); ++i)
      AddAdapter(inventory_.adapters[i], static_cast<int>(i));
    // Sorts the devices below each parent by their addresses, as NCCL does.
    root_.Visit([](XmlElement& element) {
      std::ranges::stable_sort(element.children, {},
                               [](const XmlElement& child) { return child.Get("busid"); });
    });
    if (missing_.empty()) return cuda_standin::WriteXml(root_);
    std::string hint = "collect it again with the driver loaded, or let NCCL write NCCL_TOPO_DUMP_FILE";
    if (inventory_.gdr == "unknown")
      hint += "; `sh collect_machine.sh gdr=1` (or gdr=0) says the one about GPUDirect";
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{}: missing: {}", name_, fmt::join(missing_, "; ")), hint);
  }

 private:
  void Miss(const std::string& what) {
    if (std::ranges::find(missing_, what) == missing_.end()) missing_.push_back(what);
  }

  // Sets an attribute. If the inventory does not know the value, notes the attribute as missing.
  void SetKnown(XmlElement& element, const char* attribute, const std::string& value, const std::string& of) {
    if (value.empty() || value == "-") Miss(fmt::format("{} of {}", attribute, of));
    element.Set(attribute, value);
  }

  // Returns the lower link speed or width of a device and the port above it. The texts are compared by the
  // number at their beginning. A text without one ("Unknown", in virtual machines) does not count, as in
  // NCCL.
  std::string LowerLink(const InventoryDevice& device, std::string InventoryDevice::*link) const {
    const auto port = inventory_.devices.find(ParentOf(device.place));
    const auto number = [](const std::string& text) {
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      return end == text.c_str() ? std::numeric_limits<double>::max() : value;
    };
    if (port == inventory_.devices.end() || number(port->second.*link) >= number(device.*link))
      return device.*link;
    return port->second.*link;
  }

  XmlElement& Child(XmlElement& parent, const char* tag, const char* key, const std::string& value) {
    for (XmlElement& child : parent.children) {
      if (child.tag == tag && child.Get(key) == value) return child;
    }
    XmlElement& child = parent.children.emplace_back();
    child.tag = tag;
    child.Set(key, value);
    return child;
  }

  XmlElement& Cpu(const InventoryDevice& device) {
    XmlElement& cpu = Child(root_, "cpu", "numaid", device.numa_node);
    if (device.numa_node == "-") Miss(fmt::format("numa_node of {}", device.bus_id()));
    if (cpu.Find("arch") != nullptr) return cpu;
    SetKnown(cpu, "arch", ArchitectureForNccl(inventory_.architecture), "the processor");
    cpu.Set("affinity", "00000001");
    if (inventory_.architecture != "x86_64") return cpu;
    SetKnown(cpu, "vendor", inventory_.cpu_vendor, "the processor");
    SetKnown(cpu, "familyid", FamilyForNccl(inventory_.cpu_family), "the processor");
    SetKnown(cpu, "modelid", inventory_.cpu_model, "the processor");
    return cpu;
  }

  // Returns the element of a device, which is created below the elements of the bridges above the device.
  XmlElement& Pci(const InventoryDevice& device) {
    const std::string bridge = ParentOf(ParentOf(device.place));
    const auto above = inventory_.devices.find(bridge);
    XmlElement& parent =
        IsPciPlace(bridge) && above != inventory_.devices.end() ? Pci(above->second) : Cpu(device);
    XmlElement& pci = Child(parent, "pci", "busid", device.bus_id());
    const std::string of = device.bus_id();
    SetKnown(pci, "class", device.pci_class, of);
    pci.Set("vendor", device.vendor);
    pci.Set("device", device.device);
    pci.Set("subsystem_vendor", device.subsystem_vendor);
    pci.Set("subsystem_device", device.subsystem_device);
    SetKnown(pci, "link_speed", LowerLink(device, &InventoryDevice::max_link_speed), of);
    SetKnown(pci, "link_width", LowerLink(device, &InventoryDevice::max_link_width), of);
    return pci;
  }

  const InventoryDevice* DeviceOf(const std::string& bus_id) const {
    const auto found = std::ranges::find_if(inventory_.devices,
                                            [&](const auto& one) { return one.second.bus_id() == bus_id; });
    return found == inventory_.devices.end() ? nullptr : &found->second;
  }

  // Notes as missing what nvidia-smi would tell. Without NVIDIA's driver the inventory shows GPUs only as PCI
  // devices, of unknown generation and links.
  void AddGpusWithoutDriver() {
    int gpus = 0;
    for (const auto& [place, device] : inventory_.devices)
      gpus += device.vendor == kNvidia && device.pci_class.starts_with("0x03");
    Miss(gpus == 0 ? std::string("a GPU")
                   : fmt::format("sm and NVLinks of {} GPUs, which nvidia-smi shows", gpus));
  }

  void AddGpu(const InventoryGpu& gpu) {
    const InventoryDevice* const device = DeviceOf(gpu.bus_id);
    if (device == nullptr) return Miss(fmt::format("the PCI device {} of GPU {}", gpu.bus_id, gpu.index));
    XmlElement& element = Child(Pci(*device), "gpu", "dev", std::to_string(gpu.index));
    if (gpu.architecture == 0) Miss(fmt::format("sm of GPU {}, which nvidia-smi does not show", gpu.index));
    element.Set("sm", std::to_string(gpu.architecture));
    element.Set("rank", std::to_string(gpu.index));
    if (inventory_.gdr == "unknown") Miss("gdr, whether GPUs reach adapters by GPUDirect RDMA");
    element.Set("gdr", inventory_.gdr);
    AddLinks(gpu, element);
  }

  // Returns an NVSwitch; null where none is visible as a PCI device, which some machines do not allow. The
  // caller then assumes a switch if a GPU seems to have more links than any GPU has.
  const InventoryDevice* NvSwitch() const {
    const auto found = std::ranges::find_if(inventory_.devices, [](const auto& one) {
      return one.second.vendor == kNvidia && one.second.pci_class.starts_with(kNvSwitchClass);
    });
    return found == inventory_.devices.end() ? nullptr : &found->second;
  }

  void AddLinks(const InventoryGpu& gpu, XmlElement& element) {
    const auto at = static_cast<size_t>(&gpu - inventory_.gpus.data());
    if (inventory_.links.size() != inventory_.gpus.size())
      return inventory_.gpus.size() > 1 ? Miss("NVLinks, which `nvidia-smi topo -m` shows") : void();
    int sum = 0, most = 0;
    for (const int links : inventory_.links[at]) {
      sum += links;
      most = std::max(most, links);
    }
    if (most == 0) return;
    const InventoryDevice* const nv_switch = NvSwitch();
    if (nv_switch != nullptr || sum > kMaxLinks) {
      XmlElement& link =
          Child(element, "nvlink", "target", nv_switch == nullptr ? "fffffff:ffff:ff" : nv_switch->bus_id());
      link.Set("count", std::to_string(most));
      link.Set("tclass", "0x068000");
      return;
    }
    for (size_t other = 0; other < inventory_.links[at].size(); ++other) {
      if (inventory_.links[at][other] == 0) continue;
      XmlElement& link = Child(element, "nvlink", "target", inventory_.gpus[other].bus_id);
      link.Set("count", std::to_string(inventory_.links[at][other]));
      link.Set("tclass", "0x030200");
    }
  }

  void AddAdapter(const InventoryAdapter& adapter, int index) {
    std::string place = adapter.place;
    while (!place.empty() && !IsPciPlace(place)) place = ParentOf(place);
    const auto device = inventory_.devices.find(place);
    if (device == inventory_.devices.end()) return Miss(fmt::format("the PCI device of {}", adapter.name));
    XmlElement& pci = Pci(device->second);
    XmlElement& nic = pci.children.empty() ? pci.children.emplace_back() : pci.children.front();
    nic.tag = "nic";
    if (adapter.mbps <= 0) Miss(fmt::format("speed of {}", adapter.name));
    XmlElement& net = Child(nic, "net", "dev", std::to_string(index));
    for (const auto& [key, value] :
         std::initializer_list<std::pair<const char*, std::string>>{{"name", adapter.name},
                                                                    {"latency", "0"},
                                                                    {"speed", std::to_string(adapter.mbps)},
                                                                    {"port", std::to_string(adapter.port)},
                                                                    {"guid", GuidOf(adapter.guid)},
                                                                    {"maxconn", "65536"},
                                                                    {"gdr", inventory_.gdr}})
      net.Set(key, value);
  }

  // Converts "506b:4b03:00c3:1a2b" into the form in which NCCL writes a GUID: "0x506b4b0300c31a2b".
  static std::string GuidOf(std::string guid) {
    std::erase(guid, ':');
    const size_t first = guid.find_first_not_of('0');
    return "0x" + (first == std::string::npos || guid == "-" ? "0" : guid.substr(first));
  }

  const std::string name_;
  const MachineInventory& inventory_;
  XmlElement root_;
  std::vector<std::string> missing_;
};

}  // namespace

Result<std::string> TopologyOfInventory(const std::string& name, const MachineInventory& inventory) {
  return TopologyWriter(name, inventory).Write();
}

}  // namespace dynamiccl
