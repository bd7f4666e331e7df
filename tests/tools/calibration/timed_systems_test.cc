// SPDX-License-Identifier: Apache-2.0
#include "tools/calibration/timed_systems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

std::string Written(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(TimedSystems, PicosTableHasThreeArms) {
  TimedSystems systems;
  const Status read = systems.Read(CALIBRATION_SAMPLES "/mn5_h100_allreduce_forced_algo.csv");
  ASSERT_TRUE(read) << Describe(read.error());
  const std::vector<TimedSystem> taken = systems.Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].name, "mn5_h100_allreduce_forced_algo");
  EXPECT_EQ(taken[0].left_out, 0u);
  EXPECT_EQ(taken[0].cells.size(), 4u * 9 * 3);  // The factors are scales, sizes and arms.
  const auto ring = std::find_if(taken[0].cells.begin(), taken[0].cells.end(), [](const TimedCell& cell) {
    return cell.config.algorithm == Algorithm::kRing && cell.n_ranks == 16 && cell.bytes == 256;
  });
  ASSERT_NE(ring, taken[0].cells.end());
  EXPECT_EQ(*ring, (TimedCell{.n_ranks = 16,
                              .n_nodes = 4,
                              .bytes = 256,
                              .config = {Algorithm::kRing, Protocol::kUndefined, 0},
                              .us = 42.166}));
}

TEST(TimedSystems, RepeatsOfAllFilesAreOneCell) {
  const std::string table =
      "config,bytes,ranks,nodes,coll,oop_us,ip_us\n"
      "a,1024,8,2,all_reduce,10,30\n"
      "b,1024,8,2,all_reduce,5,5\n"
      "a,1024,8,2,alltoall,9,9\n"
      "a,1024,1,1,all_reduce,9,9\n";
  TimedSystems systems;
  ASSERT_TRUE(systems.Read(Written("first.csv", table)));
  ASSERT_TRUE(
      systems.Read(Written("second.csv", "config,bytes,ranks,nodes,coll,us\na,1024,8,2,AllReduce,20\n")));
  const std::vector<TimedSystem> taken = systems.Take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].name, "a");
  EXPECT_EQ(taken[0].left_out, 2u);
  ASSERT_EQ(taken[0].cells.size(), 1u);
  EXPECT_EQ(taken[0].cells[0].us, 20);  // This is the median of 10, 30 and 20.
  // This compares 30 with 10, the lower of the other two.
  EXPECT_NEAR(taken[0].cells[0].log_spread, 1.0986, 1e-4);
  EXPECT_EQ(taken[1].cells[0].log_spread, 0);
}

TEST(TimedSystems, ErrorsNameTheLine) {
  const auto refusal = [](const std::string& row) {
    TimedSystems systems;
    const Status read = systems.Read(Written("t_allreduce.csv", "bytes,ranks,nodes,us,algo,proto\n" + row));
    return read ? std::string() : read.error().message.substr(testing::TempDir().size() + 1);
  };
  EXPECT_EQ(refusal("8,2,1,5,,\n"), "");
  EXPECT_EQ(refusal("8,2,1,5,,\n8,2,1\n"), "t_allreduce.csv: line 3: 3 fields under 6 columns");
  EXPECT_EQ(refusal("x,2,1,5,,\n"),
            "t_allreduce.csv: line 2: 'bytes' is 'x', not a number up to 1125899906842624");
  EXPECT_EQ(refusal("8,2,3,5,,\n"), "t_allreduce.csv: line 2: 'nodes' is '3', not a number up to 2");
  EXPECT_EQ(refusal("8,2,1,5,rung,\n"), "t_allreduce.csv: line 2: no algorithm 'rung'");
  EXPECT_EQ(refusal("8,2,1,5,RING,fast\n"), "t_allreduce.csv: line 2: no protocol 'fast'");
}

TEST(TimedSystems, ASweepsTopologiesAreSystemsOfTheirOwn) {
  MeasurementFile file{"hostccl", "a machine", "sweep", {}, {}};
  for (const char* const name : {"one", "two"}) {
    MeasurementContext context{.topology = name, .model = {}};
    context.model.fabric = {.n_ranks = 4, .n_nodes = 2, .max_channels = 4, .intra = {1, 5}, .inter = {2, 1}};
    file.contexts.push_back(context);
    file.rows.push_back({.topology = name,
                         .collective = Collective::kAllGather,
                         .bytes = 4096,
                         .config = {Algorithm::kRing, Protocol::kLL, 2},
                         .microseconds = {3, 1, 2}});
  }
  TimedSystems systems;
  const std::string path = testing::TempDir() + "/timed_systems_test.measurements";
  ASSERT_TRUE(WriteMeasurementFile(path, file));
  ASSERT_TRUE(systems.Read(path));
  const std::vector<TimedSystem> taken = systems.Take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[1].name, "two");
  EXPECT_EQ(taken[1].cells[0].us, 2);
  EXPECT_EQ(taken[1].cells[0].config, (CollectiveConfig{Algorithm::kRing, Protocol::kLL, 2}));
}

TEST(TimedSystems, OutputOfNcclTestsIsNamedByTheMachine) {
  std::string text = "# nThread 1 nGpus 4 minBytes 8 maxBytes 8 step: 2(factor)\n";
  for (int rank = 0; rank < 4; ++rank) {
    text += "#   Rank  " + std::to_string(rank) + " Pid 1 on host" + std::to_string(rank / 2) +
            " device  0 [0x00] A100-SXM4-40GB\n";
  }
  text +=
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  "
      "error\n"
      "           8             2   float     sum    34.66    0.00    0.00    N/A    30.00    0.00    0.00   "
      " N/A\n";
  TimedSystems systems;
  ASSERT_TRUE(systems.Read(Written("nccl_allreduce.log", text)));
  const std::vector<TimedSystem> taken = systems.Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].name, "A100-SXM4-40GB");
  ASSERT_EQ(taken[0].cells.size(), 1u);
  EXPECT_EQ(taken[0].cells[0].n_nodes, 2);
  EXPECT_EQ(taken[0].cells[0].us, 30);
}

// Returns a log of nccl-tests on two ranks. Their hosts are `host` followed by 1 and 2.
std::string LogOf(const std::string& host, const std::string& library, const std::string& time) {
  return library + "# nThread 1 nGpus 1\n#  Rank  0 Group  0 Pid 1 on " + host +
         "1 device  0 [0x01] NVIDIA H100\n#  Rank  1 Group  0 Pid 1 on " + host +
         "2 device  0 [0x01] NVIDIA H100\n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
         "           8             2     float     sum      -1    " +
         time + "    0.00    0.00      0\n";
}

TEST(TimedSystems, ClustersAndLibrariesThatDifferStayApart) {
  TimedSystems systems;
  const auto read = [&](const std::string& name, const std::string& log) {
    const Status status = systems.Read(Written(name, log));
    ASSERT_TRUE(status) << Describe(status.error());
  };
  read("a_allreduce.log", LogOf("nid", "NCCL version 2.28.7+cuda12.9\n", "10.00"));
  read("b_allreduce.log", LogOf("nid", "NCCL version 2.18.3+cuda12.2\n", "20.00"));
  read("c_allreduce.log", LogOf("gpu", "x:1:2 [0] NCCL INFO NCCL version 2.28.7\n", "30.00"));
  read("d_allreduce.log", LogOf("nid", "", "40.00"));
  std::vector<std::string> names;
  for (const TimedSystem& system : systems.Take()) names.push_back(system.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"NVIDIA H100", "NVIDIA H100, NCCL 2.18.3",
                                      "NVIDIA H100, NCCL 2.28.7 (gpu#)", "NVIDIA H100, NCCL 2.28.7 (nid#)"}));
  systems.Merge("all");
  ASSERT_EQ(systems.Take().size(), 1u);
  EXPECT_EQ(systems.Take()[0].name, "all");
  EXPECT_EQ(systems.Take()[0].cells[0].us, 20);
}

TEST(TimedSystems, TablesOfOneNameInTwoFoldersStayApart) {
  std::filesystem::create_directories(testing::TempDir() + "/one");
  TimedSystems systems;
  ASSERT_TRUE(systems.Read(Written("allreduce.csv", "bytes,ranks,us\n8,2,5\n")));
  ASSERT_TRUE(systems.Read(Written("one/allreduce.csv", "bytes,ranks,us\n8,2,50\n")));
  ASSERT_EQ(systems.Take().size(), 2u);
  EXPECT_NE(systems.Take()[0].name, systems.Take()[1].name);
}

TEST(TimedSystems, FilesWithoutTimesAreRefused) {
  TimedSystems systems;
  EXPECT_FALSE(systems.Read("/nonexistent/file"));
  EXPECT_FALSE(systems.Read(Written("nothing.csv", "a,b\n1,2\n")));
  EXPECT_FALSE(systems.Read(Written("of_what.csv", "bytes,ranks,us\n8,2,5\n")));
}

}  // namespace
}  // namespace dynamiccl
