// SPDX-License-Identifier: Apache-2.0
// The logs are of two nodes with one rank each, in the format of NCCL 2.28.9.
#include "tools/canary/fidelity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/canary/cell_output.h"

namespace dynamiccl {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// The lines that rank 0 logs before and after the lines of its graphs.
constexpr const char* kBegin =
    "h:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n"
    "h:1:2 [0] NCCL INFO NCCL_CROSS_NIC set by environment to 0.\n"
    "h:1:2 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 commId "
    "0xa7 "
    "- Init START\n"
    "h:1:2 [0] NCCL INFO === System : maxBw 48.0 totalBw 48.0 ===\n"
    "h:1:2 [0] NCCL INFO CPU/0-0 (1/1/3)\n"
    "h:1:2 [0] NCCL INFO + PCI[48.0] - GPU/0-18000 (0)\n"
    "h:1:2 [0] NCCL INFO + PCI[48.0] - NIC/0-19000\n"
    "h:1:2 [0] NCCL INFO               + NET[50.0] - NET/0-0 (0/1/1/50.000000)\n"
    "h:1:2 [0] NCCL INFO ==========================================\n";
constexpr const char* kGraph =
    "h:1:2 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 1, bw 48.000000/48.000000, type LOC/PIX, "
    "sameChannels 1\n"
    "h:1:2 [0] NCCL INFO  0 : NET/0-0 GPU/0-18000 NET/0-0\n";
constexpr const char* kEnd =
    "h:1:2 [0] NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n"
    "h:1:2 [0] NCCL INFO Channel 00/02 :  0  1\n"
    "h:1:2 [0] NCCL INFO Channel 01/02 :  0  1\n"
    "h:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1\n"
    "h:1:2 [0] NCCL INFO   Algorithm   |       Tree                  |    Ring     |\n"
    "h:1:2 [0] NCCL INFO   Protocol    |  LL   |  LL128  |  Simple   |  LL   |  LL128  |  Simple   |\n"
    "h:1:2 [0] NCCL INFO  Max NThreads |   512 |   640   |   512     |  512  |   640   |   512     |\n"
    "h:1:2 [0] NCCL INFO     AllReduce | 25.2/ 16.6 | 48.5/124.8 | 92.4/140.8 | 40.0/20.8 | 75.2/156.6 | "
    "131.6/204.8 |\n"
    "h:1:2 [0] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p "
    "channels "
    "per peer\n"
    "h:1:2 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"
    "h:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n";

std::string LogOfRank0() {
  return std::string(kBegin) + kGraph + kEnd;
}

// Replaces `what` in `text`. Fails the test if `text` does not contain it.
std::string With(std::string text, const std::string& what, const std::string& instead) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), instead);
}

Cell CellOf(const std::string& log) {
  CellRequest request;
  request.release = {2, 28, 9};
  request.ranks_of_nodes = {1, 1};
  return ReadCell(request, {log, "", "", 0, false});
}

Fidelity Compare(const std::string& theirs, const std::string& ours, int nodes = 2) {
  return CompareWithLog(ReadNcclLog(theirs), CellOf(ours), nodes, {});
}

TEST(ReadNcclLog, ReadsWhatARankFound) {
  const LoggedJob job = ReadNcclLog(LogOfRank0());
  ASSERT_TRUE(job.release);
  EXPECT_EQ(job.release->text(), "2.28.9");
  EXPECT_THAT(job.variables, ElementsAre(Pair("NCCL_CROSS_NIC", "0")));
  ASSERT_EQ(job.communicators.size(), 1u);
  const CommunicatorLog& log = job.communicators.front();
  EXPECT_EQ(log.ranks, 2);
  EXPECT_EQ(log.nodes, 2);
  EXPECT_EQ(log.channels.collective, 2);
  EXPECT_EQ(log.channels.p2p_per_peer, 2);
  EXPECT_THAT(log.rings, ElementsAre(Pair(0, "0 1"), Pair(1, "0 1")));
  EXPECT_EQ(log.expected.at("AllReduce Ring Simple"), "131.6/204.8");
  EXPECT_EQ(log.expected.at("AllReduce Tree LL"), "25.2/16.6");
  EXPECT_EQ(log.expected.size(), 6u);
  EXPECT_THAT(log.transports, ElementsAre("NET"));
  EXPECT_THAT(log.adapters, ElementsAre("0"));
  EXPECT_FALSE(log.has_all_ranks());
  const RankLog& rank = log.by_rank.at(0);
  EXPECT_TRUE(rank.complete);
  EXPECT_THAT(rank.links, ElementsAre(Pair("NET[50.0]", 1))) << "PCI is left out";
  EXPECT_THAT(rank.trees, ElementsAre("1/-1/-1->0->-1", "-1/-1/-1->0->1"));
  EXPECT_THAT(rank.graphs.at("Ring").adapters, ElementsAre("NET/0-0"));
  EXPECT_EQ(rank.graphs.at("Ring").search,
            "crossNic 0, nChannels 1, bw 48.000000/48.000000, type LOC/PIX, sameChannels 1");
}

TEST(ReadNcclLog, ASecondGraphOfAPatternHasANumber) {
  const std::string twice = std::string(kBegin) + kGraph + kGraph + kEnd;
  const LoggedJob job = ReadNcclLog(twice);
  EXPECT_EQ(job.communicators.front().by_rank.at(0).graphs.size(), 2u);
  EXPECT_TRUE(job.communicators.front().by_rank.at(0).graphs.contains("Ring 2"));
}

TEST(ReadNcclLog, KeepsCommunicatorsApartAndDropsConnectionsThatNameNone) {
  std::string other = LogOfRank0();
  for (const auto& [what, instead] : {std::pair("0xa7", "0xb8"), std::pair("nranks 2", "nranks 4"),
                                      std::pair("nRanks 2", "nRanks 4"), std::pair("2 coll", "6 coll")})
    other = With(other, what, instead);
  const LoggedJob job = ReadNcclLog(other + LogOfRank0());
  ASSERT_EQ(job.communicators.size(), 2u);
  EXPECT_EQ(job.Find(2, 2)->channels.collective, 2);
  EXPECT_EQ(job.Find(4, 2)->channels.collective, 6);
  EXPECT_EQ(job.Find(99, 2)->ranks, 4) << "the largest";
  EXPECT_THAT(job.Find(2, 2)->transports, IsEmpty());
  EXPECT_EQ(LoggedJob{}.Find(2, 2), nullptr);
}

TEST(ReadNcclLog, ReadsNothingFromWhatIsCut) {
  EXPECT_THAT(ReadNcclLog("").communicators, IsEmpty());
  EXPECT_THAT(ReadNcclLog("no line end").communicators, IsEmpty());
  // A line of another process begins inside the ring's line.
  const std::string cut =
      With(LogOfRank0(), "Channel 00/02 :  0  1", "Channel 00/02 :  0h:1:3 [1] NCCL INFO x");
  EXPECT_EQ(ReadNcclLog(cut).cut_lines, 1);
  EXPECT_THAT(ReadNcclLog(cut).communicators.front().rings, ElementsAre(Pair(1, "0 1")));
  const std::string twice_0 = With(LogOfRank0(), "Channel 00/02 :  0  1", "Channel 00/02 :  0  0");
  EXPECT_EQ(ReadNcclLog(twice_0).communicators.front().rings.size(), 1u);
  const std::string row = With(LogOfRank0(), " 131.6/204.8 |", " 131.6/20");
  EXPECT_THAT(ReadNcclLog(row).communicators.front().expected, IsEmpty());
  const std::string graph = With(LogOfRank0(), ", sameChannels 1", ", same");
  EXPECT_THAT(ReadNcclLog(graph).communicators.front().by_rank.at(0).graphs, IsEmpty());
  const std::string topology = With(LogOfRank0(), "INFO ====", "INFO Something else");
  EXPECT_THAT(ReadNcclLog(topology).communicators.front().by_rank.at(0).links, IsEmpty());
}

// If a heading is lost, the times below it must not be read as times of the part above.
TEST(ReadNcclLog, ReadsNoTimesWithoutTheirHeading) {
  const std::vector<std::string> second = {
      "h:1:2 [0] NCCL INFO   Algorithm   |       NVLS                  |\n",
      "h:1:2 [0] NCCL INFO   Protocol    |  LL   |  LL128  |  Simple   |\n",
      "h:1:2 [0] NCCL INFO  Max NThreads |     0 |     0   |   640     |\n",
      "h:1:2 [0] NCCL INFO     AllGather |  0.0/ 0.0 |  0.0/ 0.0 | 43.0/ 0.0 |\n",
      "h:1:2 [0] NCCL INFO     AllReduce |  0.0/ 0.0 |  0.0/ 0.0 | 43.0/ 0.0 |\n"};
  const std::string next = "h:1:2 [0] NCCL INFO 2 coll channels";
  for (unsigned lost = 0; lost < 1U << second.size(); ++lost) {
    std::string part;
    for (size_t line = 0; line < second.size(); ++line) {
      if ((lost >> line & 1) == 0) part += second[line];
    }
    const std::string log = With(LogOfRank0(), next, part + next);
    const auto times = ReadNcclLog(log).communicators.front().expected;
    EXPECT_EQ(times.at("AllReduce Tree LL"), "25.2/16.6") << lost;
    EXPECT_FALSE(times.contains("AllGather Tree LL")) << lost;
    const size_t rows = (lost >> 3 & 1 ? 0 : 1) + (lost >> 4 & 1 ? 0 : 1);
    EXPECT_EQ(times.size(), 6 + (lost & 3 ? 0 : 3 * rows)) << lost;
  }
}

// Cutting a log anywhere must not make a correctly described machine look wrong.
TEST(Fidelity, ACutLogContradictsNothing) {
  const std::string whole = LogOfRank0();
  const Cell cell = CellOf(whole);
  for (size_t end = 0; end <= whole.size(); ++end) {
    const Fidelity fidelity = CompareWithLog(ReadNcclLog(whole.substr(0, end)), cell, 2, {});
    EXPECT_THAT(fidelity.disagreements, IsEmpty()) << "cut behind " << whole.substr(0, end);
  }
}

TEST(Fidelity, ALineOfAnotherProcessAnywhereContradictsNothing) {
  const std::string whole = LogOfRank0();
  const Cell cell = CellOf(whole);
  for (size_t at = 0; at <= whole.size(); ++at) {
    const std::string mixed =
        whole.substr(0, at) + "h:9:9 [1] NCCL INFO Ring 00 : 1 -> 0 -> 1\n" + whole.substr(at);
    EXPECT_THAT(CompareWithLog(ReadNcclLog(mixed), cell, 2, {}).disagreements, IsEmpty()) << mixed;
  }
}

TEST(Fidelity, ThatOfARunToItsOwnLog) {
  const Fidelity fidelity = Compare(LogOfRank0(), LogOfRank0());
  EXPECT_THAT(fidelity.disagreements, IsEmpty());
  EXPECT_THAT(fidelity.not_in_log, IsEmpty());
  EXPECT_THAT(fidelity.agreements, ElementsAre("links of 1 rank", "graphs Ring of 1 rank", "2 channels",
                                               "2 rings", "trees of 1 rank", "6 entries of the cost table",
                                               "transports and connected adapters"));
  EXPECT_THAT(fidelity.variables_missing, ElementsAre(Pair("NCCL_CROSS_NIC", "0")));
  EXPECT_THAT(CompareWithLog(ReadNcclLog(LogOfRank0()), CellOf(LogOfRank0()), 2, {{"NCCL_CROSS_NIC", "0"}})
                  .variables_missing,
              IsEmpty());
}

struct Wrong {
  const char* what;
  const char* instead;
  const char* disagreement;
};

class WrongMachine : public testing::TestWithParam<Wrong> {};

TEST_P(WrongMachine, IsNoticedAndNamed) {
  const auto& [what, instead, disagreement] = GetParam();
  const Fidelity fidelity = Compare(LogOfRank0(), With(LogOfRank0(), what, instead));
  EXPECT_THAT(fidelity.disagreements, ElementsAre(disagreement));
}

INSTANTIATE_TEST_SUITE_P(
    OneLine, WrongMachine,
    testing::Values(
        Wrong{"NET[50.0]", "NET[25.0]",
              "links in the topology of 1 rank: 1 NET[50.0] in the log, 1 NET[25.0] here"},
        Wrong{"type LOC/PIX", "type LOC/SYS",
              "Ring graph of 1 rank: type LOC/PIX in the log, type LOC/SYS here"},
        Wrong{"GPU/0-18000 NET/0-0", "GPU/0-18000 NET/0-1",
              "Ring graph of 1 rank: 1 adapters in the log, 2 adapters here"},
        Wrong{"2 coll channels", "4 coll channels", "channels: 2 in the log, 4 here"},
        Wrong{"0 nvls", "1 nvls", "NVLS channels: 0 in the log, 1 here"},
        Wrong{"Channel 01/02 :  0  1", "Channel 01/02 :  1  0",
              "1 of 2 rings, first channel 01: 0 1 in the log, 1 0 here"},
        Wrong{"[1] -1/-1/-1->0->1", "[1] 1/-1/-1->0->-1",
              "trees of 1 of 1 rank, first channel 01: -1/-1/-1->0->1 in the log, 1/-1/-1->0->-1 here"},
        Wrong{"131.6/204.8", "131.6/102.4",
              "1 of 6 entries of the cost table (us/GBps), first AllReduce Ring Simple: 131.6/204.8 in the "
              "log, "
              "131.6/102.4 here"}));

TEST(Fidelity, NamesAGraphThatOneSideLacks) {
  const Fidelity fidelity = Compare(LogOfRank0(), With(LogOfRank0(), "Pattern 4", "Pattern 5"));
  EXPECT_THAT(fidelity.disagreements,
              ElementsAre(HasSubstr("NVLS graph of 1 rank: none in the log, pattern 5, crossNic 0"),
                          HasSubstr("1 adapters in the log, none here")));
}

TEST(Fidelity, OfAnotherWorldNamesTheWorldAlone) {
  const Fidelity fidelity = Compare(LogOfRank0(), LogOfRank0(), 1);
  EXPECT_THAT(fidelity.disagreements, ElementsAre("nodes: 2 in the log, 1 here"));
  EXPECT_THAT(AdviceFor(fidelity), HasSubstr("give the world of the log's communicator by --world"));
}

TEST(Fidelity, WhatALogOfOneRankLacksCountsForNothing) {
  // The run's other rank uses another adapter and shared memory.
  const std::string more = LogOfRank0() + "h:1:3 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] via SHM/direct\n" +
                           "h:1:3 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [send] via NET/IB/7\n";
  EXPECT_THAT(Compare(LogOfRank0(), more).disagreements, IsEmpty());
  EXPECT_THAT(
      Compare(more, LogOfRank0()).disagreements,
      ElementsAre("transports: NET SHM in the log, NET here", "connected adapters: 2 in the log, 1 here"));
}

TEST(Fidelity, SaysWhatTheLogDoesNotShow) {
  const std::string init_only =
      "h:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n"
      "h:1:2 [0] NCCL INFO 4 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p "
      "channels "
      "per peer\n";
  const Fidelity fidelity = Compare(init_only, LogOfRank0());
  EXPECT_THAT(fidelity.disagreements, ElementsAre("channels: 4 in the log, 2 here"));
  EXPECT_THAT(fidelity.not_in_log, Contains("graphs"));
  EXPECT_THAT(AdviceFor(fidelity), HasSubstr("NCCL_TOPO_DUMP_FILE"));
  EXPECT_THAT(AdviceFor(fidelity),
              HasSubstr("NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING also shows: topology, graphs, rings"));
}

TEST(Fidelity, NamesTheVariablesOfTheJobThatTheRunHasNot) {
  const Fidelity fidelity = Compare(LogOfRank0(), With(LogOfRank0(), "crossNic 0", "crossNic 2"));
  EXPECT_THAT(AdviceFor(fidelity), HasSubstr("the job had --env NCCL_CROSS_NIC=0"));
}

}  // namespace
}  // namespace dynamiccl
