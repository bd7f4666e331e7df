// SPDX-License-Identifier: Apache-2.0
// Writes a machine in the words of NCCL's topology file.
#include "tests/real_nccl/cuda_standin/topology_xml.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace cuda_standin {
namespace {

constexpr int kGpusPerNumaNode = 4;

// PCI classes as lspci prints them, and an identity each: NCCL asks for both and decides by the class.
constexpr const char* kBridge =
    "class=\"0x060400\" vendor=\"0x1000\" device=\"0xc030\" subsystem_vendor=\"0x1000\" "
    "subsystem_device=\"0x0001\"";
constexpr const char* kGpu =
    "class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" subsystem_vendor=\"0x10de\" "
    "subsystem_device=\"0x16c1\"";
constexpr const char* kAdapter =
    "class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\" subsystem_vendor=\"0x15b3\" "
    "subsystem_device=\"0x0023\"";

std::string OpenPci(const Machine& machine, int bus, const char* identity) {
  char address[16];
  std::snprintf(address, sizeof address, "0000:%02x:00.0", static_cast<unsigned>(bus) & 0xff);
  return std::string("<pci busid=\"") + address + "\" " + identity + " link_speed=\"" + machine.pcie_speed +
         "\" link_width=\"16\">";
}

void WriteGpu(const Machine& machine, int device, std::ostream& out) {
  out << "   " << OpenPci(machine, machine.gpu_buses[device], kGpu) << "\n    <gpu dev=\"" << device
      << "\" sm=\"" << machine.architecture << "\" rank=\"" << device << "\" gdr=\"1\">";
  if (machine.nvlinks_per_gpu > 0) {
    out << "<nvlink target=\"0000:05:00.0\" count=\"" << machine.nvlinks_per_gpu
        << "\" tclass=\"0x068000\"/>";
  }
  out << "</gpu>\n   </pci>\n";
}

void WriteAdapter(const Machine& machine, int index, std::ostream& out) {
  out << "   " << OpenPci(machine, machine.gpu_buses[index] + 1, kAdapter) << "\n    <nic><net name=\""
      << AdapterName(index) << "\" dev=\"" << index << "\" latency=\"0\" speed=\"" << machine.network_mbps
      << "\" port=\"1\" guid=\"0x" << std::hex << index + 1 << std::dec
      << "\" maxconn=\"65536\" gdr=\"1\"/></nic>\n   </pci>\n";
}

}  // namespace

std::string AdapterName(int index) {
  return "instant" + std::to_string(index);
}

std::string TopologyXml(const Machine& machine) {
  std::ostringstream out;
  const int devices = static_cast<int>(machine.gpu_buses.size());
  out << "<system version=\"1\">\n";
  for (int first = 0, numa = 0; first < devices; first += kGpusPerNumaNode, ++numa) {
    // All CPUs of the mask must exist where the test runs, or NCCL cannot pin its threads.
    out << " <cpu numaid=\"" << numa
        << "\" affinity=\"00000001\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
           "modelid=\"143\">\n";
    for (int device = first; device < std::min(first + kGpusPerNumaNode, devices); ++device) {
      out << "  " << OpenPci(machine, machine.gpu_buses[device] - 2, kBridge) << "\n";
      WriteGpu(machine, device, out);
      if (machine.network_mbps > 0) WriteAdapter(machine, device, out);
      out << "  </pci>\n";
    }
    out << " </cpu>\n";
  }
  out << "</system>\n";
  return out.str();
}

}  // namespace cuda_standin
