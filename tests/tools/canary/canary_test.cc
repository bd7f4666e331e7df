// SPDX-License-Identifier: Apache-2.0
// Tests the parts of `dynamiccl canary` that need no NCCL: a run's output, comparisons and known issues.
// canary.bats and canary_reports.bats run real releases.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tools/canary/canary.h"
#include "tools/canary/cell_json.h"
#include "tools/canary/cell_output.h"

namespace dynamiccl {
namespace {

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

// ---- output of a run ----

TEST(ConnectionOf, ReadsTransportAndAdapter) {
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(
      ConnectionOf("h:1:2 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/Described/3(0)/GDRDMA"),
      (Pair{"NET", "3"}));
  EXPECT_EQ(ConnectionOf("h:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read"),
            (Pair{"P2P", ""}));
  EXPECT_EQ(ConnectionOf("h:1:2 [0] NCCL INFO Channel 01 : 0[0] -> 1[1] via SHM/direct/direct"),
            (Pair{"SHM", ""}));
  EXPECT_EQ(ConnectionOf("h:1:2 [0] NCCL INFO Using network Described via plugin"), (Pair{}));
  EXPECT_EQ(ConnectionOf("Channel 00/0 via NET"), (Pair{"NET", ""}));
  EXPECT_EQ(ConnectionOf(""), (Pair{}));
}

TEST(StacksOf, CountsThreadsByTheInnermostFunctionsOfNccl) {
  const std::string backtraces =
      "Thread 3 (Thread 0x7f (LWP 3) \"driver\"):\n"
      "#0  0x00007f2 in __GI___poll (fds=0x7f, nfds=1) at ../poll.c:29\n"
      "#1  0x00007f3 in ncclSocketRecv () from libnccl.so.2\n"
      "#2  0x00007f3 in bootstrapRecv(void*, int, int, void*, int) () from libnccl.so.2\n"
      "#3  0x00007f4 in ncclTransportP2pSetup(ncclComm*, int) () from libnccl.so.2\n"
      "#4  0x00007f5 in ncclNvlsTreeConnect(ncclComm*) () from libnccl.so.2\n"
      "#5  0x00007f6 in ncclCommInitRankFunc(ncclAsyncJob*) () from libnccl.so.2\n"
      "Thread 2 (Thread 0x7f (LWP 2) \"driver\"):\n"
      "#0  0x00007f2 in __GI___poll () at ../poll.c:29\n"
      "#1  0x00007f4 in ncclProxyProgress(void*) () from libnccl.so.2\n"
      "Thread 1 (Thread 0x7f (LWP 1) \"driver\"):\n"
      "#0  __futex_abstimed_wait_common64 () at nptl/futex-internal.c:57\n";
  const auto stacks = StacksOf(backtraces);
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(stacks.begin()->first, "bootstrapRecv < ncclTransportP2pSetup < ncclNvlsTreeConnect");
  EXPECT_EQ(stacks.begin()->second, 1);
  EXPECT_TRUE(StacksOf("").empty());
}

CellRequest SmallRequest() {
  CellRequest request;
  request.release = {2, 28, 9};
  request.ranks_of_nodes = {1, 1};
  return request;
}

constexpr const char* kLog =
    "driver: 0 joined world in 0.5 s\n"
    "h:1:2 [0] NCCL INFO 16 coll channels, 16 collnet channels, 8 nvls channels, 32 p2p channels, 4 p2p "
    "channels per peer\n"
    "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Described/1/GDRDMA\n"
    "h:1:2 [0] graph/search.cc:1 NCCL WARN Could not find a path for pattern 1, falling back to simple "
    "order\n"
    "h:1:3 [0] graph/search.cc:1 NCCL WARN Could not find a path for pattern 1, falling back to simple "
    "order\n"
    "h:1:2 [0] misc.cc:2 NCCL WARN NUMA balancing enabled which can lead to variability\n";
constexpr const char* kGraphs =
    "<graphs version=\"1\">\n <graph id=\"0\" nchannels=\"2\" speedintra=\"24\" speedinter=\"12\" "
    "typeintra=\"NVL\" "
    "typeinter=\"PIX\">\n  <channel><net dev=\"1\"/><gpu dev=\"0\"/><net dev=\"1\"/></channel>\n </graph>\n"
    " <graph id=\"3\" nchannels=\"0\" speedintra=\"0\" speedinter=\"0\"/>\n <graph id=\"99\" "
    "nchannels=\"2\"/>\n</graphs>\n";

TEST(ReadCell, TellsHowFarARunCame) {
  constexpr int kCallFailed = 4 << 8;
  const Cell init = ReadCell(SmallRequest(), {kLog, kGraphs, "", kCallFailed, false});
  EXPECT_EQ(init.end, CellEnd::kInitFailed) << "one of two ranks joined";
  const std::string both = std::string(kLog) + "driver: 1 joined world in 0.5 s\n";
  EXPECT_EQ(ReadCell(SmallRequest(), {both, "", "", kCallFailed, false}).end, CellEnd::kCallFailed);
  const Cell crashed = ReadCell(SmallRequest(), {both + "free(): invalid pointer\n", "", "", SIGABRT, false});
  EXPECT_EQ(crashed.end, CellEnd::kCrashed);
  EXPECT_EQ(crashed.problem, "Aborted: free(): invalid pointer");
  EXPECT_EQ(ReadCell(SmallRequest(), {both, "", "", 0, true}).end, CellEnd::kHung);
  EXPECT_EQ(ReadCell(SmallRequest(), {both, "", "", 0, false}).end, CellEnd::kPassed);
}

// What the machine of the canary did not give is no fault of the release either.
TEST(ReadCell, AMachineThatIsTooSmallIsNamedAndIsNoStatementAboutTheRelease) {
  constexpr int kInitFailed = 4 << 8;
  const auto read = [](const std::string& line, int status) {
    return ReadCell(SmallRequest(), {kLog + line + "\n", "", "", status, false});
  };
  for (const char* line :
       {"cuda_standin: cannot map 4096 bytes: Cannot allocate memory",
        "h:1:2 [0] os/linux.cc:1 NCCL WARN Accept failed: Too many open files",
        "h:1:2 [0] NCCL WARN Error: failed to extend /dev/shm/nccl: No space left on device"}) {
    const Cell small = read(line, kInitFailed);
    EXPECT_EQ(small.end, CellEnd::kNotRun) << line;
    EXPECT_NE(small.problem.find(line), std::string::npos) << small.problem;
    EXPECT_NE(small.problem.find("fewer ranks (--world)"), std::string::npos) << small.problem;
    EXPECT_EQ(read(line, 0).end, CellEnd::kPassed) << "NCCL got over it";
    EXPECT_EQ(ReadCell(SmallRequest(), {kLog + std::string(line), "", "", 0, true}).end, CellEnd::kNotRun)
        << "other ranks wait for the one that failed";
  }
  EXPECT_EQ(read("", SIGKILL).end, CellEnd::kNotRun);
  EXPECT_TRUE(read("", SIGBUS).problem.starts_with("the kernel ended the run (Bus error)"));
  EXPECT_EQ(read("", SIGSEGV).end, CellEnd::kCrashed);
}

// If the stand-in lacks a CUDA call, the call fails and the release reacts somehow. That is no fault of the
// release.
TEST(ReadCell, ACallThatTheStandInLacksIsNamedAndIsNoStatementAboutTheRelease) {
  const std::string log = std::string(kLog) + "cuda_standin: cudaNewThing has no stand-in\n" +
                          "h:1:2 [0] NCCL WARN Cuda failure 801\ncuda_standin: cuOther has no stand-in\n" +
                          "cuda_standin: cudaNewThing has no stand-in\n";
  constexpr int kMissingCalls = 5 << 8, kInitFailed = 4 << 8;
  for (const auto& [status, hangs] :
       {std::pair{0, false}, {kMissingCalls, false}, {kInitFailed, false}, {SIGSEGV, false}, {0, true}}) {
    const Cell missing = ReadCell(SmallRequest(), {log, "", "", status, hangs});
    EXPECT_EQ(missing.end, CellEnd::kNotRun) << status;
    EXPECT_EQ(
        missing.problem,
        "the release calls cuOther, cudaNewThing, which the stand-in for CUDA lacks: use a newer DynamICCL, "
        "or report the release and this name");
  }
}

// Timing decides which rank's lines come last in the log.
TEST(EndText, NamesTheCauseAndNotThatARankLostAnother) {
  Cell cell{.end = CellEnd::kInitFailed, .ranks = 2};
  const std::string lost = "socketProgress: Connection closed by remote peer localhost<57326>";
  cell.warnings = {"Detected mixed local Net device counts", lost};
  EXPECT_EQ(EndText(cell), "init fails, 0 of 2 ranks joined: Detected mixed local Net device counts");
  cell.warnings = {lost};
  EXPECT_EQ(EndText(cell), "init fails, 0 of 2 ranks joined: " + lost);
}

TEST(ReadCell, ReadsChannelsConnectionsGraphsAndWarnings) {
  const Cell cell = ReadCell(SmallRequest(), {kLog, kGraphs, "", 0, false});
  EXPECT_EQ(cell.channels, 16);
  EXPECT_EQ(cell.nvls_channels, 8);
  EXPECT_EQ(cell.p2p_channels, 32);
  EXPECT_EQ(cell.p2p_channels_per_peer, 4);
  EXPECT_EQ(cell.transports, (std::map<std::string, int>{{"NET", 1}}));
  EXPECT_EQ(cell.adapters, (std::map<std::string, int>{{"1", 1}}));
  EXPECT_EQ(cell.warnings,
            std::vector<std::string>{"Could not find a path for pattern 1, falling back to simple order"});
  ASSERT_EQ(cell.graphs.size(), 1u);
  EXPECT_EQ(cell.graphs.at("Ring"), (CellGraph{2, 24, 12, "NVL", "PIX", {"1"}}));
}

TEST(ReadCell, CountsTheAdaptersOfFusedOnes) {
  const std::string log = std::string(kLog) +
                          "described_net: 0 fused 4 of 0 1\n"
                          "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 2[0] [send] via NET/Described/4\n"
                          "h:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 2[0] [send] via NET/Described/0\n";
  const Cell cell = ReadCell(SmallRequest(), {log, kGraphs, "", 0, false});
  EXPECT_EQ(cell.adapters, (std::map<std::string, int>{{"0", 2}, {"1", 2}}));
  EXPECT_FALSE(cell.counts_adapters_twice);
  std::string graphs = kGraphs;
  graphs.replace(graphs.find("<net dev=\"1\"/>"), 14, "<net dev=\"0x4\"/>");
  EXPECT_TRUE(ReadCell(SmallRequest(), {log, graphs, "", 0, false}).counts_adapters_twice) << "4 beside 1";
}

TEST(ReadCell, TakesTheMostMemoryAndAnyThreadThatLostItsCpus) {
  const std::string log = std::string(kLog) + "driver: 0 holds 1000 of device memory\n" +
                          "driver: 1 holds 3000 of device memory\ndriver: 1 holds 20\n";
  const Cell cell = ReadCell(SmallRequest(), {log, kGraphs, "", 0, false});
  EXPECT_EQ(cell.device_memory_bytes, 3000u);
  EXPECT_TRUE(cell.restores_cpus);
  const std::string pinned = log + "driver: 1 was left on other CPUs\n";
  EXPECT_FALSE(ReadCell(SmallRequest(), {pinned, kGraphs, "", 0, false}).restores_cpus);
}

TEST(ReadCell, RanksLaunchAlikeWhenTheirDigestsAreEqual) {
  const auto alike = [](const std::string& lines) {
    return ReadCell(SmallRequest(), {std::string(kLog) + lines, kGraphs, "", 0, false}).ranks_launch_alike;
  };
  const std::string first = "driver: 0 calls 10 kernels 10 digest 00000000000000aa\n";
  EXPECT_TRUE(alike(first + "driver: 1 calls 10 kernels 10 digest 00000000000000aa\n"));
  EXPECT_FALSE(alike(first + "driver: 1 calls 10 kernels 10 digest 00000000000000ab\n"));
  EXPECT_FALSE(alike(first + "driver: 1 calls 10 kernels 9 digest 00000000000000aa\n"));
  EXPECT_TRUE(alike(first + "driver: 1 calls 10 kern\n")) << "a cut line tells nothing";
}

// ---- comparisons ----

// Returns a cell of two nodes that ran well.
Cell GoodCell() {
  Cell cell{.end = CellEnd::kPassed, .seconds = 2, .ranks = 16, .ranks_joined = 16};
  cell.channels = 16;
  cell.p2p_channels = 16;
  cell.graphs["Ring"] = {8, 24, 24, "NVL", "PIX", {"0", "1"}};
  cell.adapters = {{"0", 8}, {"1", 8}};
  cell.transports = {{"NET", 16}, {"P2P", 100}};
  CellChoice choice{.collective = Collective::kAllReduce,
                    .bytes = 1 << 20,
                    .config = {Algorithm::kRing, Protocol::kLL, 16},
                    .costs = {}};
  cell.device_memory_bytes = 400 << 20;
  choice.costs[{Algorithm::kRing, Protocol::kLL}] = 100;
  choice.costs[{Algorithm::kTree, Protocol::kLL}] = 130;
  cell.choices.push_back(choice);
  return cell;
}

TEST(CellJson, ReadsBackWhatItWrote) {
  Cell cell = GoodCell();
  cell.stacks["bootstrapRecv"] = 3;
  cell.warnings = {"Could not \"find\""};
  RankLog rank{.links = {{"NET[50.0]", 2}}, .graphs = {}, .trees = {"1/-1/-1->0->-1"}, .complete = true};
  rank.graphs["Ring"] = {4, "crossNic 0", {"NET/0-0"}};
  cell.log = {.ranks = 16,
              .nodes = 2,
              .channels = {16, 8, 32, 4},
              .by_rank = {{0, rank}},
              .rings = {{0, "0 1"}},
              .expected = {{"AllReduce Ring LL", "1.0/2.0"}},
              .transports = {"NET"},
              .adapters = {"3"}};
  const Json json = KeptCellJson(cell);
  const auto again = CellFromJson(Json::parse(json.dump()));
  ASSERT_TRUE(again);
  EXPECT_EQ(KeptCellJson(*again), json);
  EXPECT_EQ(again->log, cell.log);
  EXPECT_FALSE(CellJson(cell).contains("log")) << "too long for canary --json";
  EXPECT_EQ(again->choices, cell.choices);
  for (const auto& [key, value] : json.items()) {
    Json without = json;
    without.erase(key);
    EXPECT_FALSE(CellFromJson(without)) << key;
    Json other = json;
    other[key] = Json::array({Json::object()});
    EXPECT_FALSE(CellFromJson(other)) << key;
  }
}

TEST(CompareCells, EqualCellsAreTheSame) {
  EXPECT_TRUE(CompareCells(GoodCell(), GoodCell()).empty());
  EXPECT_EQ(VerdictOf({}), CanaryVerdict::kSame);
}

// One change to a good cell, and the expected classification.
struct ChangeCase {
  const char* name;
  void (*change)(Cell*);
  DifferenceKind kind;
  Gravity gravity;
  CanaryVerdict verdict;
};

class Changes : public ::testing::TestWithParam<ChangeCase> {};

TEST_P(Changes, AreFoundAndWeighed) {
  Cell after = GoodCell();
  GetParam().change(&after);
  const auto differences = CompareCells(GoodCell(), after);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences.front().kind, GetParam().kind);
  EXPECT_EQ(differences.front().gravity, GetParam().gravity);
  EXPECT_NE(differences.front().before, differences.front().after);
  EXPECT_EQ(VerdictOf(differences), GetParam().verdict);
}

INSTANTIATE_TEST_SUITE_P(
    OfOneThing, Changes,
    ::testing::Values(ChangeCase{"hangs", [](Cell* c) { c->end = CellEnd::kHung; }, DifferenceKind::kEnd,
                                 Gravity::kGrave, CanaryVerdict::kFails},
                      ChangeCase{"crashes", [](Cell* c) { c->end = CellEnd::kCrashed; }, DifferenceKind::kEnd,
                                 Gravity::kGrave, CanaryVerdict::kFails},
                      ChangeCase{"search",
                                 [](Cell* c) {
                                   c->warnings = {"no path for pattern 1, falling back to simple order"};
                                 },
                                 DifferenceKind::kSearch, Gravity::kGrave, CanaryVerdict::kWorse},
                      ChangeCase{"unlike_kernels", [](Cell* c) { c->ranks_launch_alike = false; },
                                 DifferenceKind::kRanks, Gravity::kGrave, CanaryVerdict::kFails},
                      ChangeCase{"fewer_adapters", [](Cell* c) { c->adapters.erase("1"); },
                                 DifferenceKind::kAdapters, Gravity::kGrave, CanaryVerdict::kWorse},
                      ChangeCase{"more_adapters", [](Cell* c) { c->adapters["2"] = 1; },
                                 DifferenceKind::kAdapters, Gravity::kNotice, CanaryVerdict::kChanged},
                      ChangeCase{"lost_p2p", [](Cell* c) { c->transports.erase("P2P"); },
                                 DifferenceKind::kTransports, Gravity::kGrave, CanaryVerdict::kWorse},
                      ChangeCase{"to_shm", [](Cell* c) { c->transports["SHM"] = 1; },
                                 DifferenceKind::kTransports, Gravity::kGrave, CanaryVerdict::kWorse},
                      ChangeCase{"bandwidth", [](Cell* c) { c->graphs["Ring"].inter_gbps = 20; },
                                 DifferenceKind::kBandwidth, Gravity::kNotice, CanaryVerdict::kChanged},
                      ChangeCase{"channels", [](Cell* c) { c->channels = 8; }, DifferenceKind::kChannels,
                                 Gravity::kNotice, CanaryVerdict::kChanged},
                      ChangeCase{"memory", [](Cell* c) { c->device_memory_bytes = 500 << 20; },
                                 DifferenceKind::kMemory, Gravity::kNotice, CanaryVerdict::kChanged},
                      ChangeCase{"cpus", [](Cell* c) { c->restores_cpus = false; }, DifferenceKind::kCpus,
                                 Gravity::kNotice, CanaryVerdict::kChanged},
                      ChangeCase{"choice", [](Cell* c) { c->choices[0].config.algorithm = Algorithm::kTree; },
                                 DifferenceKind::kChoice, Gravity::kNotice, CanaryVerdict::kChanged}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(CompareCells, SmallDifferencesOfMemoryMeanNothing) {
  for (const uint64_t mib : {400u, 380u, 431u, 445u}) {
    Cell after = GoodCell();
    after.device_memory_bytes = mib << 20;
    EXPECT_TRUE(CompareCells(GoodCell(), after).empty()) << mib;
  }
  Cell unknown = GoodCell();
  unknown.device_memory_bytes = 0;
  EXPECT_TRUE(CompareCells(unknown, GoodCell()).empty()) << "a run that did not say";
}

TEST(CompareCells, ChoicesArePricedByBothModelsAndNeverAcrossThem) {
  Cell after = GoodCell();
  after.choices[0].config.algorithm = Algorithm::kTree;
  EXPECT_EQ(CompareCells(GoodCell(), after).at(0).note, "slower by the model of both releases");
  // A recalibrated model that prefers the tree is no loss in itself.
  after.choices[0].costs[{Algorithm::kTree, Protocol::kLL}] = 9;
  after.choices[0].costs[{Algorithm::kRing, Protocol::kLL}] = 10;
  EXPECT_EQ(CompareCells(GoodCell(), after).at(0).note,
            "1.30 of the time by the older release's model, 0.90 by the newer's");
  after.choices[0].config = GoodCell().choices[0].config;
  EXPECT_TRUE(CompareCells(GoodCell(), after).empty());
}

TEST(CompareCells, AMendedFailureIsANotice) {
  Cell before = GoodCell();
  before.end = CellEnd::kInitFailed;
  const auto differences = CompareCells(before, GoodCell());
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences.front().gravity, Gravity::kNotice);
}

TEST(CompareCells, NothingIsGraveWhereTheReleaseInUseFailsToo) {
  Cell before = GoodCell(), after = GoodCell();
  before.end = CellEnd::kInitFailed;
  after.end = CellEnd::kCrashed;
  after.warnings = {"no path for pattern 1, falling back to simple order"};
  const auto differences = CompareCells(before, after);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences.front().gravity, Gravity::kNotice);
}

TEST(CompareCells, ACellThatDidNotRunSaysNothing) {
  Cell after = GoodCell();
  after.end = CellEnd::kNotRun;
  EXPECT_TRUE(CompareCells(GoodCell(), after).empty());
}

// ---- known issues ----

TEST(KnownIssues, OfTheInstallationAreWhole) {
  const auto issues = ParseKnownIssues(FileText(KNOWN_ISSUES));
  ASSERT_TRUE(issues) << issues.error().message;
  ASSERT_GE(issues->size(), 3u);
  for (const KnownIssue& issue : *issues) {
    EXPECT_FALSE(issue.title.empty()) << issue.id;
    EXPECT_TRUE(issue.url.starts_with("https://")) << issue.id;
    EXPECT_NE(issue.shows_as.empty(), issue.unjudged.empty()) << issue.id;
    EXPECT_TRUE(!issue.until || issue.since < *issue.until) << issue.id;
  }
}

TEST(KnownIssues, FitByReleaseArchitectureAndGraveDifference) {
  const auto all = ParseKnownIssues(FileText(KNOWN_ISSUES));
  ASSERT_TRUE(all);
  const auto issues = IssuesOfJob(*all, {}, {{.topology = ""}});
  Cell after = GoodCell();
  after.adapters.erase("1");
  const auto differences = CompareCells(GoodCell(), after);
  const auto ids = [&](real_nccl::NcclRelease release, int architecture) {
    std::vector<std::string> found;
    for (const KnownIssue& one : IssuesFor(issues, {2, 24, 3}, release, architecture, differences))
      found.push_back(one.id);
    return found;
  };
  EXPECT_EQ(ids({2, 27, 7}, 80), std::vector<std::string>{"NVIDIA/nccl#1946"});
  EXPECT_TRUE(ids({2, 24, 3}, 80).empty()) << "before it";
  EXPECT_TRUE(ids({2, 29, 2}, 80).empty()) << "mended";
  EXPECT_TRUE(ids({2, 27, 7}, 90).empty()) << "another architecture";
  EXPECT_TRUE(IssuesFor(issues, {2, 26, 5}, {2, 27, 7}, 80, differences).empty()) << "in use has it too";
}

TEST(KnownIssues, ThatALogShowsFitByReleaseAndMessage) {
  const auto issues = ParseKnownIssues(FileText(KNOWN_ISSUES));
  ASSERT_TRUE(issues);
  const std::string log = "NCCL WARN Could not find NET with id 0; the collective hangs";
  const auto says = [&](const std::string& text) { return log.find(text) != std::string::npos; };
  const auto found = IssuesInLog(*issues, {2, 26, 5}, says);
  ASSERT_EQ(found.size(), 1u) << "'hangs' is the canary's word, not NCCL's";
  EXPECT_EQ(found[0].id, "NVIDIA/nccl#1748");
  EXPECT_TRUE(IssuesInLog(*issues, {2, 24, 3}, says).empty()) << "before it";
  EXPECT_TRUE(IssuesInLog(*issues, {2, 27, 3}, says).empty()) << "mended";
  EXPECT_FALSE(
      ParseKnownIssues(R"({"schema": 1, "issues": [{"id": "a", "title": "b", "url": "c", "since": "2.25.1",
    "shows_as": ["end"], "where": "d", "logged": true}]})"));
}

TEST(KnownIssues, AnEndFitsByWhatTheReleaseSays) {
  const auto issues = ParseKnownIssues(FileText(KNOWN_ISSUES));
  ASSERT_TRUE(issues);
  const auto ids = [&](CellEnd end, const std::string& warning) {
    Cell after = GoodCell();
    after.end = end;
    after.warnings = {warning};
    std::string found;
    for (const KnownIssue& one :
         IssuesFor(*issues, {2, 30, 7}, {2, 31, 2}, 90, CompareCells(GoodCell(), after)))
      found += one.id;
    return found;
  };
  EXPECT_EQ(ids(CellEnd::kHung, ""), "NVIDIA/nccl#2385");
  EXPECT_EQ(ids(CellEnd::kCallFailed, "No algorithm/protocol nor symKernelId available"),
            "vllm-project/vllm#58179");
  EXPECT_EQ(ids(CellEnd::kCallFailed, "something else"), "");
}

TEST(CompareCells, AProtocolThatOneReleaseHidesIsNoDifference) {
  Cell before = GoodCell();
  before.choices[0].config.protocol = Protocol::kUndefined;
  EXPECT_TRUE(CompareCells(before, GoodCell()).empty());
  before.choices[0].config.channels = 4;
  EXPECT_EQ(CompareCells(before, GoodCell()).size(), 1u);
}

TEST(KnownIssues, WrongEntriesAreNamed) {
  const std::string text = FileText(KNOWN_ISSUES);
  const auto other_release = ParseKnownIssues(Replaced(text, "\"2.25.1\"", "\"2.25\""));
  ASSERT_FALSE(other_release);
  EXPECT_NE(other_release.error().message.find("NVIDIA/nccl#1946: 'since' is no release: '2.25'"),
            std::string::npos)
      << other_release.error().message;
  EXPECT_FALSE(ParseKnownIssues(Replaced(text, "\"adapters\"", "\"adapter\"")));
  EXPECT_FALSE(ParseKnownIssues(Replaced(text, "\"schema\": 1", "\"schema\": 2")));
  EXPECT_FALSE(ParseKnownIssues(text.substr(0, text.size() / 2)));
}

// ---- rules, releases, logs ----

TEST(RulesThatRestore, AskForTheOldChoiceUpToTheNextSize) {
  CanaryAnswer answer;
  Cell old = GoodCell();
  CellChoice larger = old.choices[0];
  larger.bytes = 256 << 20;
  old.choices.push_back(larger);
  answer.in_use_cells.push_back({Connecting::kAtFirstCall, old, {}});
  JudgedRelease judged;
  judged.cells.push_back({Connecting::kAtFirstCall, old, {}});
  EXPECT_EQ(RulesThatRestore(answer, judged, 16, 2), "");
  judged.cells[0].cell.choices[0].config.algorithm = Algorithm::kTree;
  EXPECT_EQ(RulesThatRestore(answer, judged, 16, 2), "AllReduce,1048576,268435455,Ring,LL,16,2,16\n");
}

TEST(ReleaseInText, IsWhatEachBuildOfNcclHolds) {
  const auto release = ReleaseInText("...NCCL version %d...NCCL version 2.28.9+cuda13.0\n");
  ASSERT_TRUE(release);
  EXPECT_EQ(release->text(), "2.28.9");
  EXPECT_FALSE(ReleaseInText("NCCL version 2.28"));
  EXPECT_FALSE(ReleaseInText(""));
}

}  // namespace
}  // namespace dynamiccl
