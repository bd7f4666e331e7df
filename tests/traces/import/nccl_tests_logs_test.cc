// SPDX-License-Identifier: Apache-2.0
// Imports logs of nccl-tests as launchers, scripts and killed jobs leave them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/traces/import/damaged_copies.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns the lines above a table of two ranks on the hosts gpu01 and gpu02.
std::string Head(const std::string& title, const std::string& machine = "NVIDIA H100") {
  std::string head = title.empty() ? "" : "# Collective test starting: " + title + "\n";
  head += "# nThread 1 nGpus 1 minBytes 8 maxBytes 16\n";
  for (const char* const rank : {"0 Group  0 Pid 1 on  gpu01", "1 Group  0 Pid 2 on  gpu02"})
    head += std::string("#  Rank  ") + rank + " device  0 [0x01] " + machine + "\n";
  return head +
         "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   "
         "algbw  "
         " busbw #wrong\n";
}

// Returns a row whose bandwidths follow from its bytes and time. The bus bandwidth is `factor` times the
// algorithm bandwidth.
std::string Row(uint64_t bytes, double us, double factor, const std::string& wrong = "0") {
  const double gbps = static_cast<double>(bytes) / us / 1e3;
  const std::string half = fmt::format("{:>8.2f} {:>7.2f} {:>7.2f} {:>6}", us, gbps, gbps * factor, wrong);
  return fmt::format("{:>12} {:>13} {:>9} {:>7} {:>7} {} {}\n", bytes, bytes / 4, "float", "sum", "-1", half,
                     half);
}

constexpr uint64_t kMiB = 1 << 20;

std::vector<Collective> CollectivesOf(const Imported& imported) {
  std::vector<Collective> collectives;
  for (const Measurement& row : imported.measurements->rows) collectives.push_back(row.collective);
  return collectives;
}

TEST(NcclTestsLogs, RanksThatTheLauncherAnnouncesAtLengthComeFirst) {
  std::string text;
  for (int rank = 0; rank < 2048; ++rank)
    text += fmt::format("{:>4}: cpu-bind=MASK - nid00{}, task {} 0 [1]: mask 0x{:0>72} set\n", rank, rank / 4,
                        rank, "f");
  ASSERT_GT(text.size(), 230'000u);
  text += Head("all_reduce_perf") + Row(kMiB, 50, 1);
  const auto imported = ImportText(text, "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.size(), 2u);
}

TEST(NcclTestsLogs, EveryProgramIsKnownByName) {
  const std::pair<const char*, Collective> programs[] = {
      {"all_gather_perf", Collective::kAllGather}, {"all_reduce_perf_mpi", Collective::kAllReduce},
      {"alltoall_perf", Collective::kAllToAll},    {"broadcast_perf", Collective::kBroadcast},
      {"reduce_perf", Collective::kReduce},        {"reduce_scatter_perf", Collective::kReduceScatter},
      {"sendrecv_perf", Collective::kSendRecv}};
  for (const auto& [program, collective] : programs) {
    const auto imported = ImportText(
        "srun /opt/my_perf/build/" + std::string(program) + " -b 8\n" + Head("") + Row(8, 50, 1), "");
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_THAT(CollectivesOf(*imported), ElementsAre(collective, collective)) << program;
  }
}

TEST(NcclTestsLogs, TestsThatAreNoCollectivesAreNotTakenForTheOneBefore) {
  for (const char* const other : {"gather_perf", "scatter_perf", "hypercube_perf", "alltoallv_perf",
                                  "all_reduce_bias_perf", "bisection_perf", "ring_shift_perf"}) {
    const std::string text = Head("all_reduce_perf") + Row(kMiB, 50, 1) + "# Out of bounds values : 0 OK\n" +
                             Head(other) + Row(kMiB, 70, 1) + Row(2 * kMiB, 90, 1) + Head("broadcast_perf") +
                             Row(kMiB, 60, 1);
    const auto imported = ImportText(text, "");
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_THAT(CollectivesOf(*imported), ElementsAre(Collective::kAllReduce, Collective::kAllReduce,
                                                      Collective::kBroadcast, Collective::kBroadcast));
    EXPECT_THAT(imported->notes,
                Contains(AllOf(HasSubstr("2 rows of"), HasSubstr("no collective"), HasSubstr("in line 13"))))
        << other;
  }
  EXPECT_THAT(ErrorOf(Head("gather_perf") + Row(8, 5, 1), "nccl-tests"), HasSubstr("1 rows of gather"));
}

TEST(NcclTestsLogs, BandwidthsShowATableOfAnotherTest) {
  // A loop of a script does not print the tests' names. For an all-gather on 2 ranks, the bus bandwidth is
  // half the algorithm bandwidth.
  const auto imported = ImportText(
      "./all_reduce_perf -b 8\n" + Head("") + Row(kMiB, 50, 1) + Head("") + Row(kMiB, 60, 0.5), "nccl-tests");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.size(), 2u);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("not those of all_reduce on 2 ranks")));
}

TEST(NcclTestsLogs, ARowThatIsCutIsNoRow) {
  const std::string first = Row(kMiB, 50, 1);
  const std::string last = Row(kMiB << 12, 19002, 1);
  for (size_t length = 1; length < last.size(); ++length) {
    const auto imported = ImportText(Head("all_reduce_perf") + first + last.substr(0, length), "nccl-tests");
    ASSERT_TRUE(imported) << imported.error().message;
    ASSERT_EQ(imported->measurements->rows.size(), 2u) << last.substr(0, length);
  }
  const auto cut =
      ImportText(Head("all_reduce_perf") + first + last.substr(0, last.size() - 1), "nccl-tests");
  EXPECT_THAT(cut->notes, ElementsAre(HasSubstr("1 rows that are cut")));
  // A row may also be cut in the middle of a file, by the output of another program. Old alltoall rows have
  // no redop.
  std::string blank = last;
  blank.replace(blank.find("sum"), 3, "   ");
  const size_t time = blank.find("19002") + 2;
  for (const std::string& broken : {last.substr(0, time) + "\n", blank.substr(0, time) + "\n",
                                    last.substr(0, time) + "gpu01:1:2 [0] NCCL INFO x\n"}) {
    const auto imported = ImportText(Head("all_reduce_perf") + first + broken + first, "nccl-tests");
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(imported->measurements->rows.size(), 4u) << broken;
  }
}

TEST(NcclTestsLogs, ATimeThatDoesNotFitItsBandwidthIsLeftOut) {
  std::string damaged = Row(kMiB, 50, 1);
  damaged.replace(damaged.find("50.00"), 5, "20.00");
  const auto imported = ImportText(Head("all_reduce_perf") + damaged, "nccl-tests");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->measurements->rows.size(), 1u);
  EXPECT_EQ(imported->measurements->rows[0].microseconds, std::vector<float>{50});
  EXPECT_THAT(imported->notes, ElementsAre(HasSubstr("1 times that do not fit")));
}

TEST(NcclTestsLogs, TimesOfWrongResultsAreKeptAndSaid) {
  const auto imported =
      ImportText(Head("all_reduce_perf") + Row(kMiB, 50, 1) + Row(2 * kMiB, 70, 1, "12"), "nccl-tests");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.size(), 4u);
  EXPECT_THAT(imported->notes,
              ElementsAre(HasSubstr("2 times whose results were wrong (#wrong above 0): kept")));
  const std::string table = "collective,ranks,bytes,time,inplace,#wrong\n";
  const auto rows = ImportText(table + "AllReduce,8,8,5,0,0\nAllReduce,8,16,5,0,3\nGather,8,16,5,0,0\n", "");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->measurements->rows.size(), 2u);
  EXPECT_THAT(rows->notes, ElementsAre(HasSubstr("#wrong above 0"), HasSubstr("no collectives of NCCL")));
}

// Returns the lines of ranks, each with its group and host, and a table of broadcasts. Bandwidths of
// broadcasts do not show the number of ranks.
std::string Broadcasts(const std::vector<std::tuple<int, int, std::string>>& ranks, const std::string& rows) {
  std::string head = "# nThread 1 nGpus 1 minBytes 8 maxBytes 16\n";
  for (const auto& [rank, group, host] : ranks)
    head += fmt::format("#  Rank {:>2} Group {:>2} Pid {} on {:>10} device  0 [0x01] NVIDIA H100\n", rank,
                        group, rank, host);
  const std::string titled = Head("broadcast_perf");
  return titled.substr(0, titled.find('\n') + 1) + head + titled.substr(titled.find("#       size")) + rows;
}

TEST(NcclTestsLogs, TheSameRankTwiceIsTheOutputOfSeveralProcesses) {
  const std::string text = Broadcasts({{0, 0, "a"}, {0, 0, "a"}}, Row(kMiB, 50, 1) + Row(kMiB, 60, 1));
  EXPECT_THAT(ErrorOf(text, ""), HasSubstr("line 4: rank 0 stands in the list of ranks twice"));
}

TEST(NcclTestsLogs, GroupsThatRunAtTheSameTimeAreNoLargerOne) {
  const auto imported =
      ImportText(Broadcasts({{0, 0, "a"}, {1, 1, "a"}, {2, 0, "b"}, {3, 1, "b"}}, Row(kMiB, 50, 1)), "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->contexts[0].model.fabric.n_ranks, 2);
  EXPECT_EQ(imported->measurements->contexts[0].model.fabric.n_nodes, 2);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("groups of ranks that ran at the same time")));
}

TEST(NcclTestsLogs, RanksWhoseLinesAreMissingCount) {
  const auto imported = ImportText(Broadcasts({{0, 0, "a"}, {3, 0, "b"}}, Row(kMiB, 50, 1)), "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->contexts[0].model.fabric.n_ranks, 4);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("without the lines of 2 of 4 ranks")));
}

TEST(NcclTestsLogs, ARowWithPointsBetweenThousandsIsLeftOutAndCounted) {
  std::string row = Row(kMiB, 50, 1);
  row.replace(row.find("  1048576"), 9, "1,048,576");
  const auto imported = ImportText(Head("broadcast_perf") + row + Row(2 * kMiB, 70, 1), "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.size(), 2u);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("1 rows whose size has marks between its digits")));
}

TEST(NcclTestsLogs, WordsBelowATableThatBeginWithANumberAreNoRows) {
  const auto imported = ImportText(
      Head("broadcast_perf") + Row(kMiB, 50, 1) + "12.5 tokens per second\n10.0.0.5 host is up\n", "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(imported->notes, IsEmpty());
}

TEST(NcclTestsLogs, ARankBeyondAllJobsIsAnError) {
  for (const int rank : {1 << 20, 1'000'000'000, 2'147'483'647}) {
    EXPECT_THAT(ErrorOf(Broadcasts({{rank, 0, "a"}}, Row(kMiB, 50, 1)), ""),
                HasSubstr(fmt::format("line 3: rank {} is not below 1048576", rank)));
  }
}

TEST(NcclTestsLogs, TimesOfTheHostAreNotJudgedByTheBandwidthsOfTheGpu) {
  std::string head = Head("all_reduce_perf");
  for (size_t at = 0; (at = head.find("   time", at)) != std::string::npos; at += 7)
    head.replace(at, 7, "cputime");
  std::string row = Row(kMiB, 50, 1);
  for (size_t at = 0; (at = row.find("50.00", at)) != std::string::npos; at += 5) row.replace(at, 5, " 8.10");
  const auto imported = ImportText(head + row, "nccl-tests");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->measurements->rows.size(), 2u);
  EXPECT_EQ(imported->measurements->rows[0].microseconds, std::vector<float>{8.1F});
  EXPECT_THAT(imported->notes, ElementsAre(HasSubstr("2 times that the host took")));
}

TEST(NcclTestsLogs, ColoursStampsAndTagsOfLaunchersAreTakenAway) {
  const std::string plain = Head("all_reduce_perf") + Row(kMiB, 50, 1);
  for (const char* const tag : {"[rank0]:", "[rank0]: ", "[default0]:", "2026-01-31T12:00:00.500Z ",
                                "[2026-01-31 12:00:00,500] ", "2026-01-31T12:00:00.123456789+01:00 stdout F ",
                                "\x1b[0;32m", " 0: ", "2026-01-31 12:00:00 [rank0]: ", "[1,0]<stdout>:"}) {
    std::string tagged;
    std::istringstream lines(plain);
    for (std::string line; std::getline(lines, line);) tagged += tag + line + "\x1b[0m\n";
    const auto imported = ImportText(tagged, "nccl-tests");
    ASSERT_TRUE(imported) << tag << imported.error().message;
    EXPECT_EQ(imported->measurements->rows.size(), 2u) << tag;
    EXPECT_THAT(imported->notes, IsEmpty()) << tag;
  }
}

TEST(NcclTestsLogs, TheLibraryIsReadFromEveryFormOfLine) {
  for (const char* const line :
       {"NCCL version 2.28.7+cuda12.9", "gpu01:1:2 [0] NCCL INFO NCCL version 2.28.7+cuda12.9",
        "# nccl-tests version 2.17.1 nccl-headers=22801 nccl-library=22807"}) {
    const auto imported =
        ImportText(line + ("\n" + Head("all_reduce_perf")) + Row(kMiB, 50, 1), "nccl-tests");
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(imported->measurements->library, "NCCL 2.28.7") << line;
    EXPECT_EQ(imported->measurements->hosts, "gpu#");
  }
  const auto amd = ImportText("RCCL version : 2.26.6-Unknown\n" + Head("all_reduce_perf") + Row(kMiB, 50, 1),
                              "nccl-tests");
  EXPECT_EQ(amd->measurements->library, "RCCL 2.26.6-Unknown");
  EXPECT_TRUE(amd->format.starts_with("nccl-tests: ")) << amd->format;
  const auto headed =
      ImportText("rccl-tests: Version Unknown\n" + Head("all_reduce_perf") + Row(kMiB, 50, 1), "nccl-tests");
  ASSERT_TRUE(headed) << headed.error().message;
  EXPECT_TRUE(headed->format.starts_with("rccl-tests: ")) << headed->format;
}

TEST(NcclTestsLogs, RunsOfTwoLibrariesOrMachinesAreNotMixed) {
  const std::string run = Head("all_reduce_perf") + Row(kMiB, 50, 1);
  const auto two = ImportText("NCCL version 2.18.3\n" + run + "NCCL version 2.28.7\n" + run, "nccl-tests");
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message,
              AllOf(HasSubstr("line 8: a second library"), HasSubstr("NCCL 2.28.7' after 'NCCL 2.18.3")));
  EXPECT_THAT(ErrorOf(run + Head("all_reduce_perf", "NVIDIA A100") + Row(8, 5, 1), "nccl-tests"),
              HasSubstr("a second machine"));
}

TEST(NcclTestsLogs, ATestWithoutANameIsNamedByAnOption) {
  const ScratchFile file("job-17.out", Head("") + Row(kMiB, 50, 1));
  const auto unnamed = ImportFile(file.path(), "");
  ASSERT_FALSE(unnamed);
  EXPECT_THAT(unnamed.error().hint, HasSubstr("--collective"));
  const auto named = ImportFile(file.path(), "", {.collective = Collective::kReduce});
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_THAT(CollectivesOf(*named), ElementsAre(Collective::kReduce, Collective::kReduce));
}

TEST(FilesOfOtherForms, AreNamed) {
  const std::pair<std::string, const char*> forms[] = {{"\x28\xB5\x2F\xFDxxxx", "zstd -d"},
                                                       {std::string("\xFD"
                                                                    "7zXZ\0xx",
                                                                    8),
                                                        "xz -dk"},
                                                       {"BZh91AY&", "bzip2 -dk"},
                                                       {"PK\x03\x04xxxx", "unzip"},
                                                       {std::string("\xFF\xFE#\0 \0n\0", 8), "iconv"}};
  for (const auto& [content, hint] : forms) {
    const auto imported = ImportText(content, "");
    ASSERT_FALSE(imported);
    EXPECT_THAT(imported.error().hint, HasSubstr(hint));
  }
  const auto marked = ImportText(
      "\xEF\xBB\xBF"
      "collective,ranks,bytes,time,inplace\nAllReduce,8,8,5,0\n",
      "");
  ASSERT_TRUE(marked) << marked.error().message;
  EXPECT_EQ(marked->measurements->rows.size(), 1u);
}

}  // namespace
}  // namespace dynamiccl
