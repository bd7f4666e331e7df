// SPDX-License-Identifier: Apache-2.0
// Tests topologies as machines for the canary, and the errors for unusable topologies.
#include "tools/canary/described_machine.h"

#include <gtest/gtest.h>

#include "tests/real_nccl/cuda_standin/machine.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

std::string TopologyFile(const char* name) {
  return ReadTextFile(fmt::format("{}/{}.xml", CANARY_TESTS, name)).value();
}

std::string MeshTopology() {
  return TopologyFile("four_a100_mesh");
}

std::string Edited(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

TEST(DescribedMachine, TopologyBecomesWhatTheStandInReads) {
  const auto machine = DescribeTopology("mesh", MeshTopology());
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->gpus, 4);
  EXPECT_EQ(machine->adapters, 4);
  EXPECT_EQ(machine->architecture, 80);
  std::string error;
  const auto stand_in = cuda_standin::ParseMachine(machine->stand_in, &error);
  ASSERT_TRUE(stand_in) << error;
  EXPECT_EQ(stand_in->gpu_buses.size(), 4u);
  EXPECT_EQ(stand_in->gpu_device, 0x20b2);
  EXPECT_EQ(stand_in->multicast, 0);
}

TEST(DescribedMachine, DevicesOfOtherDomainsAndLinksBetweenThemAreRenumberedAlike) {
  std::string text = MeshTopology();
  for (size_t at = 0; (at = text.find("\"0000:1d:00.0\"", at)) != std::string::npos;)
    text.replace(at, 14, "\"0003:1d:00.1\"");
  const auto machine = DescribeTopology("mesh", text);
  ASSERT_TRUE(machine) << machine.error().message;
  std::string error;
  const auto stand_in = cuda_standin::ParseMachine(machine->stand_in, &error);
  ASSERT_TRUE(stand_in) << error;
  const std::string first = fmt::format("busid=\"0000:{:02x}:00.0\"", stand_in->gpu_buses.at(0));
  EXPECT_NE(machine->topology.find(first), std::string::npos);
  EXPECT_EQ(machine->topology.find("0003:"), std::string::npos);
  EXPECT_NE(machine->topology.find(fmt::format("target=\"0000:{:02x}:00.0\"", stand_in->gpu_buses.at(1))),
            std::string::npos);
}

TEST(DescribedMachine, GpusBehindASwitchOfHopperHaveMulticast) {
  std::string text = MeshTopology();
  for (size_t at = 0; (at = text.find("sm=\"80\"", at)) != std::string::npos;)
    text.replace(at, 7, "sm=\"90\"");
  text = Edited(text, "<nvlink target=\"0000:56:00.0\" count=\"4\" tclass=\"0x030200\"/>",
                "<nvlink target=\"0000:05:00.0\" count=\"4\" tclass=\"0x068000\"/>");
  const auto machine = DescribeTopology("hopper", text);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_NE(machine->stand_in.find("multicast = 1"), std::string::npos);
}

// NCCL would fill in each of these values from the machine on which it runs, which is not the user's.
TEST(DescribedMachine, WhatIsLeftToTheMachineIsRefused) {
  const struct {
    const char* what;
    const char* with;
    const char* message;
  } cases[] = {{" modelid=\"106\"", "", "<cpu> without 'modelid'"},
               {" link_width=\"16\"", "", "<pci> without 'link_width'"},
               {" gdr=\"1\">", ">", "<gpu> without 'gdr'"},
               {" speed=\"100000\"", "", "<net> without 'speed'"},
               {"<system version=\"1\">", "<graphs>", "ends <graphs>"}};
  for (const auto& one : cases) {
    const auto machine = DescribeTopology("mesh", Edited(MeshTopology(), one.what, one.with));
    ASSERT_FALSE(machine) << one.what;
    EXPECT_NE(machine.error().message.find(one.message), std::string::npos) << machine.error().message;
    EXPECT_NE(machine.error().hint.find("NCCL_TOPO_DUMP_FILE"), std::string::npos);
  }
  EXPECT_FALSE(DescribeTopology("empty", ""));
  EXPECT_FALSE(DescribeTopology("no GPU", "<system version=\"1\"></system>"));
}

// NCCL silently reads such a text as 0.
TEST(DescribedMachine, ATextWhereANumberBelongsIsRefusedWithItsLine) {
  const struct {
    const char* what;
    const char* with;
    const char* message;
  } cases[] = {
      {" speed=\"100000\"", " speed=\"fast\"", "line 12: <net> has speed=\"fast\", which is no number"},
      {" speed=\"100000\"", " speed=\"100 000\"", "line 12: <net> has speed"},
      {" latency=\"0\"", " latency=\"\"", "line 12: <net> has latency=\"\""},
      {" link_width=\"16\"", " link_width=\"x16\"", "line 3: <pci> has link_width=\"x16\""},
      {" sm=\"80\"", " sm=\"sm_80\"", "line 5: <gpu> has sm"},
      {" count=\"4\"", " count=\"nan\"", "line 6: <nvlink> has count"},
      {" modelid=\"106\"", " modelid=\"Xeon\"", "line 2: <cpu> has modelid"}};
  for (const auto& one : cases) {
    const auto machine = DescribeTopology("mesh", Edited(MeshTopology(), one.what, one.with));
    ASSERT_FALSE(machine) << one.with;
    EXPECT_NE(machine.error().message.find(one.message), std::string::npos) << machine.error().message;
  }
  for (const char* latency : {"1e-05", "0.5", "-1", "0x1f"})
    EXPECT_TRUE(DescribeTopology(
        "mesh", Edited(MeshTopology(), " latency=\"0\"", fmt::format(" latency=\"{}\"", latency))));
}

// NCCL refuses another version. It replaces the other unknown texts by its fallback.
TEST(DescribedMachine, AWordThatNcclDoesNotKnowIsRefused) {
  const auto described = [](const char* what, const std::string& with) {
    return DescribeTopology("mesh", Edited(MeshTopology(), what, with));
  };
  const auto refused = [&](const char* what, const char* with) {
    return described(what, with).error().message;
  };
  EXPECT_EQ(refused("version=\"1\"", "version=\"9\""),
            "mesh: line 1: <system> has version=\"9\", which is no version that NCCL reads: 1");
  EXPECT_EQ(
      refused("x86_64", "aarch64"),
      "mesh: line 2: <cpu> has arch=\"aarch64\", which is no architecture that NCCL knows: x86_64, arm64 or "
      "ppc64");
  EXPECT_EQ(refused("16.0 GT/s PCIe", "quick"),
            "mesh: line 3: <pci> has link_speed=\"quick\", which is no speed of a PCI link that NCCL knows, "
            "such as 16.0 GT/s PCIe");
  for (const char* speed : {"16.0 GT/s", "32.0 GT/s", "7 GT/s", "64 GT/s", "128.0 GT/s PCIe"})
    EXPECT_FALSE(described("16.0 GT/s PCIe", speed)) << speed;
  for (const char* speed : {"2.5 GT/s", "8 GT/s", "32 GT/s", "2.5 GT/s PCIe", "8.0 GT/s PCIe",
                            "64.0 GT/s PCIe", "Unknown", "Unknown speed", ""})
    EXPECT_TRUE(described("16.0 GT/s PCIe", speed)) << speed;
}

// NCCL compares only the beginning of the text with its own words.
TEST(DescribedMachine, AnArchitectureThatBeginsWithOneOfNcclIsRead) {
  EXPECT_TRUE(DescribeTopology("mesh", Edited(MeshTopology(), "x86_64", "ppc64le")));
  const std::string x86 = Edited(MeshTopology(), "x86_64", "x86_64_v3");
  EXPECT_TRUE(DescribeTopology("mesh", x86));
  EXPECT_FALSE(DescribeTopology("mesh", Edited(x86, " modelid=\"106\"", ""))) << "NCCL reads an x86's model";
}

// The file is a dump of two of four GPUs, so the links to the other two lead nowhere.
TEST(DescribedMachine, HalfADumpIsRefused) {
  std::string half = MeshTopology();
  half.erase(half.find("  <pci busid=\"0000:8d:00.0\""));
  const auto machine = DescribeTopology("half", half + " </cpu>\n</system>\n");
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().message, "half: line 7: <nvlink> to GPU 0000:8f:00.0, which is not in the file");
  EXPECT_NE(machine.error().hint.find("all GPUs of the node"), std::string::npos);
}

// NCCL would use the network of the machine on which the canary runs.
TEST(CheckAdapters, SeveralNodesNeedAdaptersOrOneNvlinkDomain) {
  const DescribedMachine without = DescribeTopology("g5", TopologyFile("g5")).value();
  const DescribedMachine with = DescribeTopology("mesh", MeshTopology()).value();
  EXPECT_TRUE(CheckAdapters({without}, 1));
  EXPECT_TRUE(CheckAdapters({with}, 2));
  for (const auto& machines : {std::vector{without}, std::vector{with, without}}) {
    const Status checked = CheckAdapters(machines, 2);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().message,
              "g5 has no <net>, and 2 nodes need a network: NCCL would take that of this machine");
    EXPECT_NE(checked.error().hint.find("--world 1x8"), std::string::npos);
  }
  DescribedMachine tray = without;
  ASSERT_TRUE(ShareNvlink(2, &tray));
  EXPECT_TRUE(CheckAdapters({tray}, 2));
  EXPECT_FALSE(CheckAdapters({tray}, 4)) << "two domains";
}

// A topology does not show these properties, so the user states them.
TEST(TakeAway, SaysWhatDoesNotWork) {
  DescribedMachine machine = DescribeTopology("mesh", MeshTopology()).value();
  ASSERT_TRUE(TakeAway({}, &machine));
  EXPECT_EQ(machine.stand_in.find("lacks"), std::string::npos);
  ASSERT_TRUE(TakeAway({"peer_access"}, &machine));
  EXPECT_NE(machine.stand_in.find("\nlacks = peer_access\n"), std::string::npos) << machine.stand_in;
  EXPECT_FALSE(TakeAway({"peer_access"}, &machine)) << "stated twice";
}

TEST(TakeAway, RefusesOtherWordsAndWhatTheMachineHasNotAnyway) {
  const DescribedMachine mesh = DescribeTopology("mesh", MeshTopology()).value();
  const auto message_of = [&](const std::vector<std::string>& lacks) {
    DescribedMachine machine = mesh;
    const Status taken = TakeAway(lacks, &machine);
    EXPECT_EQ(machine.stand_in, mesh.stand_in) << "changed by a refusal";
    return taken ? "" : taken.error().message;
  };
  EXPECT_EQ(message_of({"peer_access", "luck"}),
            "--lacks peer_access,luck: mesh: 'lacks' knows peer_access, multicast_binding and "
            "fabric_handles, not 'luck'");
  EXPECT_EQ(message_of({"multicast_binding"}), "--lacks multicast_binding: mesh has none");
  EXPECT_EQ(message_of({"fabric_handles"}), "--lacks fabric_handles: mesh has none");
}

}  // namespace
}  // namespace dynamiccl
