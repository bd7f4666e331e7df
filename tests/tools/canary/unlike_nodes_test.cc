// SPDX-License-Identifier: Apache-2.0
// Tests worlds whose nodes differ, and nodes whose GPUs share NVSwitches. canary.bats runs real releases on
// both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/canary/cell_output.h"
#include "tools/canary/comparison.h"
#include "tools/launch/temporary_folder.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string Tray(const char* name) {
  return ReadTextFile(fmt::format("{}/{}.xml", CANARY_TESTS, name)).value();
}

// Marks a topology's processors as those of `host`, as NCCL dumps a whole NVLink domain.
std::string OfHost(std::string text, const std::string& host) {
  text = text.substr(text.find("<system"));
  text = text.substr(text.find('\n'), text.rfind("</system>") - text.find('\n'));
  for (size_t at = 0; (at = text.find("<cpu ", at)) != std::string::npos; at += host.size())
    text.insert(at + 5, "host_hash=\"" + host + "\" ");
  return text;
}

class DumpedDomains : public testing::Test {
 protected:
  std::vector<DescribedMachine> NodesOf(const std::string& processors) {
    const std::string path = folder_.File("domain.xml");
    EXPECT_TRUE(WriteTextFile(path, "<system version=\"1\">" + processors + "</system>\n"));
    auto nodes = DescribeNodes({}, path);
    EXPECT_TRUE(nodes) << nodes.error().message;
    return nodes ? *nodes : std::vector<DescribedMachine>{};
  }

  TemporaryFolder folder_ = TemporaryFolder::Create("unlike").value();
};

TEST_F(DumpedDomains, HostsThatAreAlikeAreOneMachine) {
  std::string second = OfHost(Tray("gb300_tray"), "0xb");
  for (size_t at = 0; (at = second.find("guid=\"0x", at)) != std::string::npos; at += 8)
    second.insert(at + 8, "a");
  const auto nodes = NodesOf(OfHost(Tray("gb300_tray"), "0xa") + second);
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes.front().gpus, 4);
  EXPECT_EQ(nodes.front().nvlink_domain_nodes, 2);
  EXPECT_THAT(nodes.front().stand_in, HasSubstr("nvlink_domain_nodes = 2"));
}

TEST_F(DumpedDomains, HostsThatAreUnlikeAreAMachineEach) {
  const auto nodes = NodesOf(OfHost(Tray("gb300_tray"), "0xa") + OfHost(Tray("gb300_lost_link"), "0xb"));
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_THAT(nodes[0].topology, HasSubstr("<nvlink"));
  EXPECT_NE(nodes[0].topology, nodes[1].topology);
  EXPECT_EQ(nodes[1].nvlink_domain_nodes, 2);
}

TEST(ShareNvlink, ContradictsNoMachine) {
  DescribedMachine machine = DescribeTopology("tray", Tray("gb300_tray")).value();
  EXPECT_EQ(machine.nvlink_domain_nodes, 0);
  EXPECT_TRUE(ShareNvlink(18, &machine));
  EXPECT_TRUE(ShareNvlink(18, &machine));
  const Status other = ShareNvlink(9, &machine);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, "tray has NVLink domains of 18 nodes, not of 9");
}

CellRequest UnlikeRequest() {
  CellRequest request;
  request.release = {2, 28, 9};
  request.machines.resize(2);
  request.ranks_of_nodes = {2, 1};
  return request;
}

// Two nodes may have adapters of the same number. The rank tells which node an adapter belongs to.
constexpr const char* kLog =
    "h:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/Described/0/GDRDMA\n"
    "h:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [receive] via NET/Described/0/GDRDMA\n"
    "h:1:2 [0] NCCL INFO Channel 01/0 : 1[1] -> 2[0] [send] via NET/Described/3/GDRDMA\n"
    "h:1:2 [0] NCCL INFO Channel 01/0 : 2[0] -> 0[0] [receive] via NET/Described/0/GDRDMA\n";

TEST(UnlikeNodes, HaveAdaptersOfTheirOwn) {
  const Cell cell = ReadCell(UnlikeRequest(), {kLog, "", "", 0, false});
  EXPECT_THAT(cell.adapters, ElementsAre(Pair("0/0", 2), Pair("0/3", 1), Pair("1/0", 1)));
  CellRequest alike = UnlikeRequest();
  alike.machines.resize(1);
  EXPECT_THAT(ReadCell(alike, {kLog, "", "", 0, false}).adapters, ElementsAre(Pair("0", 3), Pair("3", 1)));
}

TEST(UnlikeNodes, AnAdapterLostOnOneNodeIsGrave) {
  const Cell before = ReadCell(UnlikeRequest(), {kLog, "", "", 0, false});
  Cell after = before;
  after.adapters.erase("1/0");
  const auto differences = CompareCells(before, after);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].gravity, Gravity::kGrave);
  EXPECT_EQ(differences[0].before, "3 of all nodes used");
}

TEST(CompareCells, WhereNeitherRunsThatIsSaid) {
  constexpr int kCallFailed = 4 << 8;
  const Cell cell = ReadCell(UnlikeRequest(), {kLog, "", "", kCallFailed, false});
  const auto differences = CompareCells(cell, cell);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].gravity, Gravity::kNotice);
  EXPECT_THAT(differences[0].note, HasSubstr("neither runs"));
}

}  // namespace
}  // namespace dynamiccl
