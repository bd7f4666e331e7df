// SPDX-License-Identifier: Apache-2.0
// Tests what the tools read from running jobs. Files and records are made up.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/policy/policy_file.h"
#include "tests/support/sample_policy.h"
#include "tests/traces/any_trace.h"
#include "tools/running/live_calls.h"
#include "tools/running/metrics_reading.h"
#include "tools/running/policy_swap.h"
#include "tools/running/running_process.h"
#include "tools/running/value_setting.h"
#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// A temporary folder for the duration of a test.
class InFolder : public ::testing::Test {
 protected:
  InFolder() {
    std::string folder = fs::temp_directory_path() / "dynamiccl-running-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~InFolder() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  std::string folder_;
};

// ---- live calls: records are 1 ns apart, and the communicator's record is at 1000 ns ----

TEST(LiveCalls, CountsTheWindowAloneByCollectiveAndPowerOfTwo) {
  SectionBuilder builder(3, 4);
  builder.Call(0, Collective::kAllReduce, 1 << 20);    // 1001
  builder.Call(1, Collective::kAllReduce, 5000);       // 1002
  builder.Call(2, Collective::kAllReduce, 4096);       // 1003
  builder.Call(3, Collective::kReduceScatter, 64000);  // 1004
  const LiveProcess live = LiveCallsOf(builder.section(), 1005, 3);
  EXPECT_EQ(live.rank, 3);
  EXPECT_EQ(live.calls, 3u);
  EXPECT_EQ(live.bytes, 5000u + 4096 + 64000);
  EXPECT_DOUBLE_EQ(live.seconds, 3e-9);
  EXPECT_DOUBLE_EQ(live.idle_seconds, 1e-9);
  ASSERT_EQ(live.keys.size(), 2u);
  EXPECT_EQ(live.keys[0].collective, Collective::kReduceScatter);
  EXPECT_EQ(live.keys[0].bytes, 32768u);
  EXPECT_EQ(live.keys[1].calls, 2u);
  EXPECT_EQ(live.keys[1].all_bytes, 9096u);
}

TEST(LiveCalls, WhatWasOverwrittenShortensTheWindow) {
  SectionBuilder builder(0, 2);
  builder.Call(0, Collective::kAllReduce, 64).Call(1, Collective::kAllReduce, 64);
  builder.section().lost = 10;
  const LiveProcess live = LiveCallsOf(builder.section(), 1011, 1000);
  EXPECT_EQ(live.calls, 2u);
  EXPECT_DOUBLE_EQ(live.seconds, 10e-9);
}

TEST(LiveCalls, AProcessWithoutCallsHasNone) {
  const LiveProcess live = LiveCallsOf(SectionBuilder(0, 2).section(), 5000, 1000);
  EXPECT_EQ(live.calls, 0u);
  EXPECT_LT(live.idle_seconds, 0);
  EXPECT_TRUE(live.keys.empty());
}

// ---- metrics ----

TEST(MetricsReading, SumsByLabelAndLeavesOutWhatIsNotWhole) {
  const auto metrics = ParseMetrics(
      "# HELP dynamiccl_decisions_total Answers.\n"
      "dynamiccl_decisions_total{collective=\"AllReduce\",decided_by=\"policy\",rank=\"0\"} 120\n"
      "dynamiccl_decisions_total{collective=\"AllGather\",decided_by=\"policy\"} 3\n"
      "dynamiccl_decisions_total{decided_by=\"nc\\\"cl\"} 4.5\n"
      "dynamiccl_memory_pressure 2\n"
      "dynamiccl_decisions_total{decided_by=\"policy\n"
      "dynamiccl_decisions_total{decided_by=\"policy\"}\n"
      "dynamiccl_decisions_total");
  EXPECT_EQ(metrics.size(), 4u);
  const auto sums = SumBy(metrics, "dynamiccl_decisions_total", "decided_by");
  EXPECT_EQ(sums, (std::map<std::string, double>{{"policy", 123}, {"nc\"cl", 4.5}}));
}

// ---- processes ----

class Processes : public InFolder {
 protected:
  void Process(const std::string& id, const std::string& maps, const std::string& environment) const {
    Write(id + "/maps", maps);
    Write(id + "/environ", environment);
    Write(id + "/cmdline", std::string("python\0train.py\0", 16));
    fs::create_symlink("/home/me", folder_ + "/" + id + "/cwd");
  }
};

TEST_F(Processes, ThatLoadedTheObjectAreFoundWithTheirSettings) {
  const std::string loaded = "7f00-7f01 r-xp 00000000 fe:00 1 /opt/lib/libdynamiccl.so\n";
  Process("40", loaded + "7f02-7f03 rw-s 00000000 fe:00 2 /data/run 1.ctrace\n",
          std::string("RANK=1\0DYNAMICCL_POLICY=p.%r.dcpolicy\0PATH=/bin\0", 49));
  Process("41", "7f00-7f01 r-xp 00000000 fe:00 1 /opt/lib/libother.so\n", "");
  Process("42", loaded + "7f02-7f03 rw-s 00000000 fe:00 2 /data/run.ctrace~node1.42.part\n",
          std::string("OMPI_COMM_WORLD_RANK=0\0", 23));
  Write("self/maps", loaded);
  const auto processes = RunningProcesses(folder_);
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0].id, 42);
  EXPECT_EQ(processes[0].rank, 0);
  EXPECT_EQ(processes[0].PathSetting("DYNAMICCL_POLICY"), "");
  EXPECT_EQ(processes[0].trace, "/data/run.ctrace~node1.42.part") << "under dynamiccl record";
  EXPECT_EQ(processes[1].trace, "/data/run 1.ctrace");
  EXPECT_EQ(processes[1].program, "python train.py");
  EXPECT_EQ(processes[1].PathSetting("DYNAMICCL_POLICY"), "/home/me/p.1.dcpolicy");
  EXPECT_EQ(processes[1].settings.size(), 1u);
}

TEST_F(Processes, ThatEndWhileTheyAreLookedAtAreNone) {
  fs::create_directories(folder_ + "/77");
  EXPECT_TRUE(RunningProcesses(folder_).empty());
  EXPECT_TRUE(RunningProcesses(folder_ + "/absent").empty());
}

// ---- policies ----

class SwappedPolicy : public InFolder {
 protected:
  Sha256Digest Put(const std::string& name, Protocol protocol) const {
    return *WritePolicyFile(folder_ + "/" + name, *test::MakePolicyThatPrefers(Algorithm::kRing, protocol));
  }
  Sha256Digest DigestOf(const std::string& name) const {
    return (*ReadPolicyFile(folder_ + "/" + name))->sha256;
  }
  const std::string path_ = folder_ + "/p.dcpolicy";
};

TEST_F(SwappedPolicy, GoesThereAndBackAndThereAgain) {
  const Sha256Digest first = Put("p.dcpolicy", Protocol::kSimple);
  const Sha256Digest second = Put("next.dcpolicy", Protocol::kLL);
  const auto swap = SwapPolicy(path_, folder_ + "/next.dcpolicy");
  ASSERT_TRUE(swap) << swap.error().message;
  EXPECT_EQ(swap->before, first);
  EXPECT_EQ(swap->after, second);
  EXPECT_EQ(DigestOf("p.dcpolicy"), second);
  ASSERT_TRUE(RollBackPolicy(path_));
  EXPECT_EQ(DigestOf("p.dcpolicy"), first);
  ASSERT_TRUE(RollBackPolicy(path_));
  EXPECT_EQ(DigestOf("p.dcpolicy"), second);
}

TEST_F(SwappedPolicy, IsNotChangedByADamagedFile) {
  const Sha256Digest first = Put("p.dcpolicy", Protocol::kSimple);
  Write("next.dcpolicy", "no policy");
  EXPECT_FALSE(SwapPolicy(path_, folder_ + "/next.dcpolicy"));
  EXPECT_FALSE(RollBackPolicy(path_));
  EXPECT_EQ(DigestOf("p.dcpolicy"), first);
  EXPECT_FALSE(fs::exists(PreviousOf(path_)));
}

// ---- live values ----

using ValueSetting = InFolder;

TEST_F(ValueSetting, MakesTheFileAndChangesOnlyWhatIsNamed) {
  const std::string path = folder_ + "/values";
  EXPECT_EQ(*SetValues(path, {"a=1", "b=2"}), (AgreedValues{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(*SetValues(path, {"b=-3"}), (AgreedValues{{"a", 1}, {"b", -3}}));
}

TEST_F(ValueSetting, RefusesAWrongValueOrFileAndChangesNothing) {
  const std::string path = folder_ + "/values";
  ASSERT_TRUE(SetValues(path, {"a=1"}));
  EXPECT_FALSE(SetValues(path, {"a=2", "b"}));
  EXPECT_EQ(*SetValues(path, {}), (AgreedValues{{"a", 1}}));
  Write("values", "by hand\n");
  EXPECT_FALSE(SetValues(path, {"a=2"}));
  EXPECT_FALSE(SetValues(folder_ + "/no/folder", {"a=2"}));
}

}  // namespace
}  // namespace dynamiccl
