// SPDX-License-Identifier: Apache-2.0
// An inventory of a fabricated node must give the machine that NCCL's own topology file describes. If the
// node does not show an attribute, the error must name it. The attribute must not come from the machine that
// runs the test.
#include "tools/canary/machine_inventory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/topology_xml.h"
#include "tests/real_nccl/cuda_standin/xml_tree.h"
#include "tools/canary/described_machine.h"
#include "tools/canary/inventory_topology.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

using cuda_standin::XmlElement;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Inventories : public ::testing::Test {
 protected:
  Inventories() { std::filesystem::create_directories(folder_); }
  ~Inventories() override { std::filesystem::remove_all(folder_); }

  static void Run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

  // Runs the collector on a node that resembles `topology`. Returns its output.
  std::string Collect(const std::string& topology, const std::string& fabricate = "",
                      const std::string& words = "gdr=1") {
    const std::string xml = folder_ + "/node.xml", node = folder_ + "/node" + std::to_string(++nodes_);
    std::ofstream(xml) << topology;
    Run(fmt::format("python3 '{}/fabricate_sys.py' '{}' '{}' {}", CANARY_TESTS, xml, node, fabricate));
    const std::string out = node + "/inventory";
    Run(fmt::format(
        "env ARCH=x86_64 SYSFS='{0}/sys' PROCFS='{0}/proc' PATH='{0}/bin:'\"$PATH\" sh '{1}' {2} >'{3}'",
        node, COLLECTOR, words, out));
    return ReadTextFile(out).value_or("");
  }

  std::string TopologyOf(const std::string& inventory) {
    const auto parsed = ParseMachineInventory("node.inventory", inventory);
    EXPECT_TRUE(parsed) << parsed.error().message;
    const auto xml = TopologyOfInventory("node.inventory", parsed.value());
    EXPECT_TRUE(xml) << xml.error().message;
    return xml.value_or("");
  }

  std::string ErrorOf(const std::string& inventory) {
    const auto parsed = ParseMachineInventory("node.inventory", inventory);
    EXPECT_TRUE(parsed) << parsed.error().message;
    const auto xml = TopologyOfInventory("node.inventory", parsed.value());
    EXPECT_FALSE(xml);
    return xml ? "" : Describe(xml.error());
  }

  std::string folder_ = ::testing::TempDir() + fmt::format("inventories_{}", ::getpid());
  int nodes_ = 0;
};

std::string MeshOfA100() {
  return ReadTextFile(CANARY_TESTS "/four_a100_mesh.xml").value();
}

// Returns the topology as the canary shows it to NCCL: one line per element with sorted attributes. It leaves
// out values that decide nothing: the adapters' GUIDs and the switch's address.
std::set<std::string> ElementsOf(const std::string& xml) {
  std::string error;
  const auto machine = DescribeTopology("node", xml);
  EXPECT_TRUE(machine) << machine.error().message;
  auto root = cuda_standin::ParseXml(machine.value().topology, &error);
  std::set<std::string> lines;
  const std::function<void(const XmlElement&, const std::string&)> add = [&](const XmlElement& element,
                                                                             const std::string& above) {
    std::set<std::string> attributes;
    for (const auto& [name, value] : element.attributes) {
      const bool of_switch = name == "target" && element.Get("tclass") == "0x068000";
      if (name != "guid" && !of_switch) attributes.insert(name + "=" + value);
    }
    const std::string line = fmt::format("{}/{} {}", above, element.tag, fmt::join(attributes, " "));
    lines.insert(line);
    for (const XmlElement& child : element.children) add(child, line);
  };
  add(*root, "");
  return lines;
}

// Returns the elements that only one of the two topologies has.
std::vector<std::string> Unlike(const std::string& one, const std::string& other) {
  const std::set<std::string> a = ElementsOf(one), b = ElementsOf(other);
  std::vector<std::string> unlike;
  std::ranges::set_symmetric_difference(a, b, std::back_inserter(unlike));
  return unlike;
}

// Returns a named machine as NCCL dumps such a node. NCCL sorts devices by address and writes AMD's family
// 143 where Linux has 23.
std::string AsNcclDumps(const std::string& xml) {
  std::string error;
  auto root = cuda_standin::ParseXml(xml, &error);
  root->Visit([](XmlElement& element) {
    if (element.Get("familyid") == "23") element.Set("familyid", "143");
    std::ranges::stable_sort(element.children, {},
                             [](const XmlElement& child) { return child.Get("busid"); });
  });
  return cuda_standin::WriteXml(*root);
}

TEST_F(Inventories, AreTheMachinesThatNcclDescribes) {
  std::map<std::string, std::string> topologies;
  for (const char* const name : {"four_a100_mesh", "g5", "lambda_4xa6000"})
    topologies[name] = ReadTextFile(fmt::format("{}/{}.xml", CANARY_TESTS, name)).value();
  for (const char* const name : {"dgx_a100", "dgx_h100", "hgx_a100", "pcie_l40s", "two_a800"}) {
    std::string error;
    const auto machine = cuda_standin::ParseMachine(
        ReadTextFile(fmt::format("{}/{}.machine", MACHINES, name)).value(), &error);
    ASSERT_TRUE(machine) << name << error;
    topologies[name] = AsNcclDumps(cuda_standin::TopologyXml(*machine));
  }
  for (const auto& [name, xml] : topologies) {
    const bool switches = xml.find("tclass=\"0x068000\"") != std::string::npos;
    EXPECT_THAT(Unlike(TopologyOf(Collect(xml, switches ? "--switches" : "")), xml), IsEmpty()) << name;
  }
}

// Eight GPUs have twelve links to each other GPU. No GPU has 84 links, so there must be switches, although
// none is on the bus.
TEST_F(Inventories, SwitchesThatAreNoPciDevices) {
  std::string error;
  const auto machine = cuda_standin::ParseMachine(ReadTextFile(MACHINES "/dgx_a100.machine").value(), &error);
  const std::string xml = AsNcclDumps(cuda_standin::TopologyXml(*machine));
  EXPECT_THAT(Unlike(TopologyOf(Collect(xml)), xml), IsEmpty());
}

TEST_F(Inventories, WhatTheNodeDoesNotShowIsNamed) {
  const std::string mesh = MeshOfA100();
  EXPECT_THAT(ErrorOf(Collect(mesh, "--no-driver")),
              HasSubstr("sm and NVLinks of 4 GPUs, which nvidia-smi shows"));
  EXPECT_THAT(ErrorOf(Collect(mesh, "", "")),
              HasSubstr("gdr, whether GPUs reach adapters by GPUDirect RDMA"));
  const auto without = [&](const std::string& attribute) {
    std::string less = mesh;
    const size_t at = less.find(attribute, less.find("1d:00.0"));
    less.replace(at, less.find('"', at + attribute.size()) - at, attribute + "-");
    return ErrorOf(Collect(less));
  };
  EXPECT_THAT(without("link_width=\""), HasSubstr("missing: link_width of 0000:1d:00.0"));
  EXPECT_THAT(without("link_speed=\""), HasSubstr("missing: link_speed of 0000:1d:00.0"));
}

// A port that is slower than its device limits the link. A port that is down is no adapter.
TEST_F(Inventories, AreReadAsNcclReadsThem) {
  Collect(MeshOfA100());
  const std::string node = folder_ + "/node1";
  Run(fmt::format(
      "echo '8.0 GT/s PCIe' >\"$(cd -P '{}/sys/bus/pci/devices/0000:1d:00.0/..' && pwd)/max_link_speed\"",
      node));
  Run(fmt::format("echo '1: DOWN' >'{}/sys/class/infiniband/mlx5_3/ports/1/state'", node));
  Run(
      fmt::format("env ARCH=x86_64 SYSFS='{0}/sys' PROCFS='{0}/proc' PATH='{0}/bin:'\"$PATH\" sh '{1}' gdr=0 "
                  ">'{0}/again'",
                  node, COLLECTOR));
  const std::string text = ReadTextFile(node + "/again").value();
  EXPECT_EQ(ParseMachineInventory("again", text).value().adapters.size(), 3u);
  const std::string xml = TopologyOf(text);
  const size_t gpu = xml.find("1d:00.0");
  EXPECT_THAT(xml.substr(gpu, xml.find('>', gpu) - gpu), HasSubstr("link_speed=\"8.0 GT/s PCIe\""));
  EXPECT_THAT(xml, HasSubstr("gdr=\"0\""));
}

// Linux calls a Grace processor aarch64, and NCCL calls it arm64.
TEST_F(Inventories, HaveNcclsWordsForTheArchitecture) {
  MachineInventory node = ParseMachineInventory("node.inventory", Collect(MeshOfA100())).value();
  const auto with = [&](const char* machine) {
    node.architecture = machine;
    return TopologyOfInventory("node.inventory", node).value();
  };
  EXPECT_THAT(with("aarch64"), HasSubstr("arch=\"arm64\""));
  EXPECT_THAT(with("ppc64le"), HasSubstr("arch=\"ppc64\""));
}

// A virtual machine does not show the speed of the port above a device. NCCL then uses the device's speed.
TEST_F(Inventories, ASpeedThatIsUnknownDoesNotBoundALink) {
  Collect(MeshOfA100());
  const std::string node = folder_ + "/node1";
  Run(fmt::format("echo Unknown >\"$(cd -P '{}/sys/bus/pci/devices/0000:1d:00.0/..' && pwd)/max_link_speed\"",
                  node));
  Run(
      fmt::format("env ARCH=x86_64 SYSFS='{0}/sys' PROCFS='{0}/proc' PATH='{0}/bin:'\"$PATH\" sh '{1}' gdr=1 "
                  ">'{0}/again'",
                  node, COLLECTOR));
  const std::string again = TopologyOf(ReadTextFile(node + "/again").value());
  const size_t gpu = again.find("1d:00.0");
  EXPECT_THAT(again.substr(gpu, again.find('>', gpu) - gpu), HasSubstr("link_speed=\"16.0 GT/s PCIe\""));
}

TEST_F(Inventories, CutDamagedAndLaterFilesAreRefused) {
  const std::string text = Collect(MeshOfA100());
  for (size_t size = 30; size < text.size(); size += 97) {
    const auto cut = ParseMachineInventory("node.inventory", text.substr(0, size));
    ASSERT_FALSE(cut) << size;
    EXPECT_THAT(Describe(cut.error()), HasSubstr("collect it again on the node")) << size;
  }
  EXPECT_FALSE(ParseMachineInventory("node.inventory", text.substr(0, text.size() - 1)));
  for (size_t at = 40; at + 1 < text.size(); at += 61) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(ParseMachineInventory("node.inventory", damaged)) << at;
  }
  std::string later = text;
  later.replace(later.find('\t') + 1, 1, "2");
  const auto refused = ParseMachineInventory("node.inventory", later);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("version '2' of the format, this program reads 1"));
}

// The value is that of POSIX cksum: `printf 123456789 | cksum` prints 930766865.
TEST(PosixChecksum, IsThatOfTheCommand) {
  EXPECT_EQ(PosixChecksum("123456789"), 930766865u);
  EXPECT_EQ(PosixChecksum(""), 4294967295u);
}

// An unknown record comes from a later collector and is ignored. A record that lacks fields is an error with
// its line.
TEST(MachineInventories, RecordsAreChecked) {
  const auto of = [](std::string body) {
    body = "dynamiccl-machine-inventory\t1\n" + body;
    return ParseMachineInventory("n", body + fmt::format("end\t{}\t{}\n", PosixChecksum(body), body.size()));
  };
  EXPECT_EQ(of("host\ta\nweather\tfine\n").value().host, "a");
  const auto error = of("host\ta\npci\tx\t0x030200\n");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().message, "n:3: 3 fields of 'pci', 10 expected");
  EXPECT_THAT(Describe(TopologyOfInventory("n", of("host\ta\n").value()).error()),
              HasSubstr("missing: a GPU"));
}

}  // namespace
}  // namespace dynamiccl
