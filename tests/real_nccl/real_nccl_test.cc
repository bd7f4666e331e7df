// SPDX-License-Identifier: Apache-2.0
// Tests NVIDIA's own libnccl.so.2, unmodified, over the CUDA stand-in, with 2 nodes of 8 ranks of a DGX H100.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/real_nccl/asked_tables.h"
#include "tests/real_nccl/real_nccl_run.h"
#include "tests/real_nccl/require_release.h"

namespace dynamiccl::real_nccl {
namespace {

constexpr NcclRelease kRelease = {2, 28, 9};
constexpr size_t kFunctions = 5;  // calls that the driver's program makes for each size

// Returns NCCL's total of a call from the bytes of its TUNING line.
size_t TotalBytes(const TuningLine& line, int ranks) {
  const bool shared_out = line.function == "AllGather" || line.function == "ReduceScatter";
  return shared_out ? line.bytes * ranks : line.bytes;
}

class RealNccl : public testing::Test {
 protected:
  void SetUp() override {
    REAL_NCCL_REQUIRE_RELEASE(kRelease);
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    scratch_ = testing::TempDir() + "/real_nccl_" + test->name();
    std::filesystem::create_directories(scratch_);
    request_ = {.release = kRelease,
                .scratch_folder = scratch_,
                .bytes = {1024, 65536, 1 << 20, 16 << 20, 256 << 20}};
    shared_memory_before_ = SharedMemoryNames();
  }
  void TearDown() override {
    if (!scratch_.empty()) std::filesystem::remove_all(scratch_);
  }

  RunOutcome Run() {
    RunOutcome outcome = RunDriver(request_);
    Check(outcome);
    return outcome;
  }

  // Runs two nodes of one rank each, as two processes. Returns rank 0's outcome, because only rank 0 reports
  // choices.
  RunOutcome RunTwoProcesses(const Environment& own0, const Environment& own1) {
    request_.nodes = 2;
    request_.ranks_per_node = 1;
    const auto outcomes = RunDriverProcesses(request_, {own0, own1});
    EXPECT_EQ(outcomes[1].exit_code, 0) << outcomes[1].output;
    Check(outcomes[0]);
    return outcomes[0];
  }

  // Doubles the calls, because DynamICCL leaves the first call of each function and size to NCCL.
  void IssueEverythingTwice() {
    const std::vector<size_t> once = request_.bytes;
    request_.bytes.insert(request_.bytes.end(), once.begin(), once.end());
  }
  static std::vector<TuningLine> SecondHalf(const RunOutcome& outcome) {
    const auto middle = outcome.choices.begin() + static_cast<long>(outcome.choices.size() / 2);
    return {middle, outcome.choices.end()};
  }

  void Check(const RunOutcome& outcome) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_EQ(outcome.output.find("has no stand-in"), std::string::npos) << outcome.output;
    EXPECT_EQ(outcome.choices.size(), request_.bytes.size() * kFunctions) << outcome.output;
    EXPECT_THAT(LeftSharedMemory(shared_memory_before_), testing::IsEmpty());
  }

  RunRequest request_;
  std::string scratch_;
  std::vector<std::string> shared_memory_before_;
};

TEST_F(RealNccl, OwnChoiceIsTheMinimumOfTheTableItHandsToATuner) {
  const RunOutcome alone = Run();
  request_.environment = {{"NCCL_TUNER_PLUGIN", REAL_NCCL_TABLE_TUNER},
                          {"TABLE_TUNER_FILE", scratch_ + "/tables"}};
  const RunOutcome asked = Run();
  EXPECT_EQ(alone.choices, asked.choices);
  const auto tables = ReadAskedTables(scratch_ + "/tables").tables;
  ASSERT_EQ(tables.size(), alone.choices.size());
  for (size_t call = 0; call < tables.size(); ++call) {
    const TuningLine& choice = alone.choices[call];
    const CollectiveConfig best = tables[call].Cheapest();
    EXPECT_EQ(choice.function, Name(tables[call].collective));
    EXPECT_EQ(TotalBytes(choice, request_.ranks()), tables[call].bytes) << choice;
    EXPECT_EQ(choice.algorithm, LogName(best.algorithm)) << choice;
    EXPECT_EQ(choice.protocol, LogName(best.protocol)) << choice;
  }
}

struct Asked {
  std::string function;   // as NCCL prints it
  size_t max_bytes = 0;   // NCCL's total; the first row that fits is used
  std::string algorithm;  // as NCCL prints it
  std::string protocol;
  int channels = 0;
};

// Small messages get few channels, because NCCL gives each channel at least 32 KiB of traffic and removes
// surplus channels.
const Asked kAsked[] = {
    {"AllReduce", 65536, "RING", "LL", 1},          {"AllReduce", 16 << 20, "TREE", "LL128", 2},
    {"AllReduce", 1 << 30, "RING", "SIMPLE", 5},    {"AllGather", 65536, "RING", "LL128", 1},
    {"AllGather", 1 << 30, "RING", "LL", 3},        {"ReduceScatter", 65536, "RING", "SIMPLE", 1},
    {"ReduceScatter", 1 << 30, "RING", "LL128", 7}, {"Broadcast", 65536, "RING", "SIMPLE", 1},
    {"Broadcast", 1 << 30, "RING", "LL128", 4},     {"Reduce", 65536, "RING", "LL", 1},
    {"Reduce", 1 << 30, "RING", "SIMPLE", 6},
};

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  return text;
}

// Writes the rules as the CSV of NCCL's example tuner, in which the first matching line is used.
std::string WriteRules(const std::string& folder) {
  const std::string path = folder + "/rules.csv";
  std::ofstream file(path);
  for (const Asked& row : kAsked) {
    file << LowerCase(row.function) << ",0," << row.max_bytes << "," << LowerCase(row.algorithm) << ","
         << LowerCase(row.protocol) << "," << row.channels << ",-1,-1\n";
  }
  return path;
}

const Asked* FindAsked(const TuningLine& choice, int ranks) {
  const auto fits = [&](const Asked& row) {
    return row.function == choice.function && TotalBytes(choice, ranks) <= row.max_bytes;
  };
  const auto row = std::find_if(std::begin(kAsked), std::end(kAsked), fits);
  return row == std::end(kAsked) ? nullptr : row;
}

TEST_F(RealNccl, PreloadedTunersRulesAreWhatNcclReportsItTook) {
  request_.door = Door::kPreload;
  request_.environment = {{"DYNAMICCL_RULES", WriteRules(scratch_)},
                          {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"}};
  IssueEverythingTwice();
  const RunOutcome outcome = Run();
  for (const TuningLine& choice : SecondHalf(outcome)) {
    const Asked* asked = FindAsked(choice, request_.ranks());
    ASSERT_NE(asked, nullptr) << choice;
    EXPECT_EQ(choice.algorithm, asked->algorithm) << choice;
    EXPECT_EQ(choice.protocol, asked->protocol) << choice;
    EXPECT_EQ(choice.channels(), asked->channels) << choice;
  }
}

TEST_F(RealNccl, ObserveModeLeavesEveryChoiceAsItWas) {
  const RunOutcome alone = Run();
  request_.door = Door::kPreload;
  request_.environment = {{"DYNAMICCL_MODE", "observe"}, {"DYNAMICCL_TRACE", scratch_ + "/trace.ctrace"}};
  const RunOutcome observed = Run();
  EXPECT_EQ(alone.choices, observed.choices);
  EXPECT_TRUE(std::filesystem::exists(scratch_ + "/trace.ctrace"));
}

TEST_F(RealNccl, LoadedWithoutSettingsChangesNothing) {
  const RunOutcome alone = Run();
  request_.door = Door::kPreload;
  EXPECT_EQ(alone.choices, Run().choices);
}

TEST_F(RealNccl, ProcessesAgreeThroughTheUniqueIdAndTakeTheRules) {
  request_.door = Door::kPreload;
  const Environment rules = {{"DYNAMICCL_RULES", WriteRules(scratch_)},
                             {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"}};
  IssueEverythingTwice();
  for (const TuningLine& choice : SecondHalf(RunTwoProcesses(rules, rules))) {
    const Asked* asked = FindAsked(choice, request_.ranks());
    ASSERT_NE(asked, nullptr) << choice;
    EXPECT_EQ(choice.algorithm, asked->algorithm) << choice;
    EXPECT_EQ(choice.protocol, asked->protocol) << choice;
  }
}

TEST_F(RealNccl, OneProcessWithOtherRulesLeavesAllOnTheDefault) {
  const RunOutcome alone = RunTwoProcesses({}, {});
  request_.door = Door::kPreload;
  const std::string other = scratch_ + "/other.csv";
  std::ofstream(other) << "allreduce,0,1048576,ring,ll,1,-1,-1\n";
  const RunOutcome differing =
      RunTwoProcesses({{"DYNAMICCL_RULES", WriteRules(scratch_)}}, {{"DYNAMICCL_RULES", other}});
  EXPECT_EQ(alone.choices, differing.choices);
  EXPECT_NE(differing.output.find("NCCL WARN DynamICCL: rank "), std::string::npos) << differing.output;
}

}  // namespace
}  // namespace dynamiccl::real_nccl
