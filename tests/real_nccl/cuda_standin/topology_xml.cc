// SPDX-License-Identifier: Apache-2.0
// Writes a machine as NCCL's topology file.
#include "tests/real_nccl/cuda_standin/topology_xml.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace cuda_standin {
namespace {

// PCI classes as lspci prints them, each with an identity. NCCL reads both and decides by the class.
constexpr const char* kBridge =
    "class=\"0x060400\" vendor=\"0x1000\" device=\"0xc030\" subsystem_vendor=\"0x1000\" "
    "subsystem_device=\"0x0001\"";
constexpr const char* kAdapter =
    "class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\" subsystem_vendor=\"0x15b3\" "
    "subsystem_device=\"0x0023\"";

std::string GpuIdentity(const Machine& machine) {
  char text[160];
  std::snprintf(text, sizeof text,
                "class=\"0x030200\" vendor=\"0x10de\" device=\"0x%04x\" subsystem_vendor=\"0x10de\" "
                "subsystem_device=\"0x%04x\"",
                static_cast<unsigned>(machine.gpu_device) & 0xffff,
                static_cast<unsigned>(machine.gpu_board) & 0xffff);
  return text;
}

std::string OpenPci(const Machine& machine, int bus, const std::string& identity) {
  char address[16];
  std::snprintf(address, sizeof address, "0000:%02x:00.0", static_cast<unsigned>(bus) & 0xff);
  return std::string("<pci busid=\"") + address + "\" " + identity + " link_speed=\"" + machine.pcie_speed +
         "\" link_width=\"16\">";
}

void WriteGpu(const Machine& machine, int device, std::ostream& out) {
  out << "   " << OpenPci(machine, machine.gpu_buses[device], GpuIdentity(machine)) << "\n    <gpu dev=\""
      << device << "\" sm=\"" << machine.architecture << "\" rank=\"" << device << "\" gdr=\"1\">";
  if (machine.nvlinks_per_gpu > 0) {
    out << "<nvlink target=\"0000:05:00.0\" count=\"" << machine.nvlinks_per_gpu
        << "\" tclass=\"0x068000\"/>";
  }
  // 44712 MB/s is the speed of one link that NCCL writes on GB200 and GB300.
  if (machine.c2c_links > 0) out << "<c2c bw=\"44712\" count=\"" << machine.c2c_links << "\"/>";
  out << "</gpu>\n   </pci>\n";
}

void WriteAdapter(const Machine& machine, int index, std::ostream& out) {
  const int bus = machine.gpu_buses[machine.adapters_at[index]] + 1;
  out << "   " << OpenPci(machine, bus, kAdapter) << "\n    <nic><net name=\"" << AdapterName(index)
      << "\" dev=\"" << index << "\" latency=\"0\" speed=\"" << machine.network_mbps
      << "\" port=\"1\" guid=\"0x" << std::hex << index + 1 << std::dec
      << "\" maxconn=\"65536\" gdr=\"1\"/></nic>\n   </pci>\n";
}

// Writes the GPUs from `first` on that share a PCI switch, and the adapters beside them. GPUs with links of
// their own to the processor have no switch.
void WriteSwitch(const Machine& machine, int first, std::ostream& out) {
  const int end = std::min(first + machine.gpus_per_switch, static_cast<int>(machine.gpu_buses.size()));
  const bool has_switch = machine.c2c_links == 0;
  if (has_switch) out << "  " << OpenPci(machine, machine.gpu_buses[first] - 2, kBridge) << "\n";
  for (int device = first; device < end; ++device) WriteGpu(machine, device, out);
  for (size_t index = 0; index < machine.adapters_at.size(); ++index) {
    if (machine.adapters_at[index] >= first && machine.adapters_at[index] < end)
      WriteAdapter(machine, static_cast<int>(index), out);
  }
  if (has_switch) out << "  </pci>\n";
}

// NCCL distinguishes processors by vendor, family and model on x86 only.
std::string Processor(const Machine& machine) {
  if (machine.cpu_vendor == "arm64") return "arch=\"arm64\"";
  return "arch=\"x86_64\" vendor=\"" + machine.cpu_vendor + "\" familyid=\"" +
         std::to_string(machine.cpu_family) + "\" modelid=\"" + std::to_string(machine.cpu_model) + "\"";
}

}  // namespace

std::string AdapterName(int index) {
  return "instant" + std::to_string(index);
}

std::string TopologyXml(const Machine& machine) {
  std::ostringstream out;
  const int devices = static_cast<int>(machine.gpu_buses.size());
  out << "<system version=\"1\">\n";
  for (int first = 0, numa = 0; first < devices; first += machine.gpus_per_numa_node, ++numa) {
    // Every CPU of the mask must exist where the test runs, or NCCL cannot pin its threads. So the mask has
    // CPU 0 only.
    out << " <cpu numaid=\"" << numa << "\" affinity=\"00000001\" " << Processor(machine) << ">\n";
    const int end = std::min(first + machine.gpus_per_numa_node, devices);
    for (int device = first; device < end; device += machine.gpus_per_switch)
      WriteSwitch(machine, device, out);
    out << " </cpu>\n";
  }
  out << "</system>\n";
  return out.str();
}

}  // namespace cuda_standin
