// SPDX-License-Identifier: Apache-2.0
// Tests `--batch auto`. The batch must follow the memory that others leave free, equally on all ranks. The
// level of memory must be reported and recorded. No sample may be lost or used twice, and losses must stay
// the mean over the samples of a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "src/decision/guard/memory_level.h"
#include "tests/zero_workloads/rank_processes.h"
#include "traces/format/trace_calls.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::zero {
namespace {

using ::testing::HasSubstr;

struct Step {
  int64_t batch, first_sample;
  double loss;
};

std::vector<Step> ReadSteps(const std::filesystem::path& json) {
  std::vector<Step> steps;
  std::ifstream file(json);
  for (std::string text; std::getline(file, text);) {
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_object() && line.contains("step"))
      steps.push_back({line["batch"], line["first_sample"], line["loss"]});
  }
  return steps;
}

// Returns arguments for the small model whose batch follows memory. A row takes about a third of a MiB.
std::vector<std::string> Arguments(const std::string& pressure, const std::filesystem::path& json) {
  std::vector<std::string> arguments = SmallModel();
  const auto set = [&](const char* option, const char* value) {
    *(std::find(arguments.begin(), arguments.end(), option) + 1) = value;
  };
  set("--batch", "auto");
  set("--steps", "28");
  arguments.insert(arguments.end(),
                   {"--memory-cap", "32M", "--memory-taken", pressure, "--json", json.string()});
  return arguments;
}

void ExpectInOrder(const std::vector<Step>& steps) {
  int64_t next = 0;
  for (const Step& step : steps) {
    EXPECT_EQ(step.first_sample, next);
    next += step.batch;
  }
}

constexpr const char* kSchedule = "0:0,12:27M,20:0";

TEST(BatchFromMemory, FollowsWhatOthersLeaveAndTheLevelIsRecorded) {
  const TemporaryFolder folder;
  const std::filesystem::path json = folder / "report.json";
  std::string command =
      std::string(DYNAMICCL_PROGRAM) + " zero -n 2 --trace " + (folder / "rank.%r.ctrace").string();
  for (const std::string& word : Arguments(kSchedule, json)) command += " '" + word + "'";
  ASSERT_EQ(std::system((command + " > " + (folder / "log").string() + " 2>&1").c_str()), 0) << command;

  const std::vector<Step> steps = ReadSteps(json);
  ASSERT_EQ(steps.size(), 28u);
  ExpectInOrder(steps);
  EXPECT_EQ(steps[0].batch, 2);  // one row per rank
  EXPECT_EQ(steps[1].batch, 4);
  EXPECT_GE(steps[11].batch, 64);
  EXPECT_LE(steps[12].batch, 8);  // the batch falls at once
  EXPECT_EQ(steps[12].batch, steps[19].batch);
  EXPECT_EQ(steps[27].batch, steps[11].batch);

  for (const char* rank : {"0", "1"}) {
    const auto trace = ReadTrace((folder / (std::string("rank.") + rank + ".ctrace")).string());
    ASSERT_TRUE(trace) << trace.error().message;
    const std::vector<MemoryView> memory = CallsOf(trace->sections.at(0)).memory;
    ASSERT_EQ(memory.size(), 28u);
    MemoryLevel level;
    std::vector<MemoryPressure> levels;
    for (const MemoryView& one : memory) {
      EXPECT_EQ(one.total_bytes, uint64_t{32} << 20);
      level.Take(one.free_bytes, one.total_bytes);
      levels.push_back(level.level());
    }
    EXPECT_EQ(levels[11], MemoryPressure::kLow);
    EXPECT_EQ(levels[12], MemoryPressure::kHigh);
    EXPECT_EQ(levels[19], MemoryPressure::kHigh);
    EXPECT_EQ(levels[20], MemoryPressure::kLow);
  }
}

// Two ranks, and one rank with two micro-steps, use the same samples in every step. So their mean losses
// agree.
TEST(BatchFromMemory, LossesAreTheMeanOverTheStepsSamples) {
  std::vector<std::vector<Step>> runs;
  for (const int ranks : {1, 2}) {
    const TemporaryFolder folder;
    std::vector<std::string> arguments = Arguments(kSchedule, folder / "report.json");
    if (ranks == 1) arguments.insert(arguments.end(), {"--micro-steps", "2"});
    for (const RankOutcome& rank : RunRanks({.ranks = ranks, .arguments = arguments}))
      ASSERT_EQ(rank.exit_code, 0) << rank.output;
    runs.push_back(ReadSteps(folder / "report.json"));
  }
  ASSERT_EQ(runs[0].size(), 28u);
  ExpectInOrder(runs[0]);
  for (size_t i = 0; i < runs[0].size(); ++i) {
    EXPECT_EQ(runs[0][i].batch, runs[1][i].batch) << i;
    // This is the tolerance between runs of different world sizes.
    EXPECT_NEAR(runs[0][i].loss, runs[1][i].loss, 2e-5) << i;
  }
}

// Returns the values of a scalar in TensorBoard's event files. The value is field 2, a float, after the tag.
std::vector<float> ScalarsIn(const std::filesystem::path& folder, const std::string& tag) {
  std::vector<float> values;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::stringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    const std::string text = bytes.str(), before = tag + '\x15';
    for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1)) {
      std::memcpy(&values.emplace_back(), text.data() + at + before.size(), sizeof(float));
    }
  }
  return values;
}

TEST(BatchFromMemory, TensorBoardHasTheSpeedOfEachStep) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = Arguments(kSchedule, folder / "report.json");
  arguments.insert(arguments.end(), {"--tensorboard", (folder / "events").string()});
  const RankOutcome rank = RunRanks({.ranks = 1, .arguments = arguments})[0];
  ASSERT_EQ(rank.exit_code, 0) << rank.output;
  const std::vector<float> speeds = ScalarsIn(folder / "events", "speed/tokens_per_second");
  EXPECT_EQ(speeds.size(), 28u);
  EXPECT_THAT(speeds, ::testing::Each(::testing::Gt(0.0f)));
}

// The test writes the file while the run continues.
TEST(BatchFromMemory, AFileChangesThePressure) {
  const TemporaryFolder folder;
  const std::string taken = (folder / "taken").string();
  std::ofstream(taken) << "27M";
  const std::filesystem::path json = folder / "report.json";
  std::vector<std::string> arguments = Arguments("file:" + taken, json);
  *(std::find(arguments.begin(), arguments.end(), "28")) = "1000000";
  RankProcesses run({.ranks = 1, .arguments = arguments});
  const auto last_batch = [&] {
    const std::vector<Step> steps = ReadSteps(json);
    return steps.empty() ? 0 : steps.back().batch;
  };
  while (last_batch() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LE(last_batch(), 4);
  std::ofstream(taken) << "0";
  // The launch's time limit bounds this loop.
  while (last_batch() < 32) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  run.Kill(0, SIGKILL);
  run.Wait();
}

TEST(BatchFromMemory, NeedsACap) {
  std::vector<std::string> arguments = SmallModel();
  *(std::find(arguments.begin(), arguments.end(), "--batch") + 1) = "auto";
  const RankOutcome rank = RunRanks({.ranks = 1, .arguments = arguments})[0];
  EXPECT_EQ(rank.exit_code, 2);
  EXPECT_THAT(rank.output, HasSubstr("--batch auto needs to know how much memory there is"));
}

}  // namespace
}  // namespace dynamiccl::zero
