// SPDX-License-Identifier: Apache-2.0
// Tests PyTorch's backend nccl2 under rules. NCCL takes the rules on each communicator of the backend, for
// calls on the group's stream and on the program's stream. Calls that no tuner can change stay as they are.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "src/collective/coverage.h"
#include "tests/real_nccl/asked_choices.h"
#include "tests/real_nccl/real_nccl_run.h"
#include "tests/real_nccl/require_release.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::real_nccl {

namespace {

// From 2.29 on NCCL makes one AllGatherV of a list's broadcasts. It then asks about an AllGather of 4096
// bytes and does not log the choice, so the rules begin above this size.
constexpr const char* kRules =
    "allreduce,0,1073741824,ring,ll,-1,-1,-1\n"
    "allgather,8192,1073741824,ring,simple,-1,-1,-1\n"
    "reducescatter,0,1073741824,ring,ll,-1,-1,-1\n";

class Nccl2 : public testing::TestWithParam<NcclRelease> {
 protected:
  void SetUp() override {
    REAL_NCCL_REQUIRE_RELEASE(GetParam());
    scratch_ = testing::TempDir() + "/nccl2_" + GetParam().text();
    std::filesystem::create_directories(scratch_);
    std::ofstream(scratch_ + "/rules.csv") << kRules;
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  RunOutcome Run() const {
    RunRequest request{.release = GetParam(), .scratch_folder = scratch_};
    request.bytes = {4096, 1 << 20, 16 << 20};
    request.program = "nccl2";
    request.door = Door::kPreload;
    request.limit_s = 300;
    request.environment = {{"DYNAMICCL_RULES", scratch_ + "/rules.csv"},
                           {"DYNAMICCL_DECISION_LOG", scratch_ + "/decisions"},
                           {"DYNAMICCL_TRACE", scratch_ + "/job.ctrace"},
                           {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"}};
    return RunDriver(request);
  }

  // Returns the number of decisions of all ranks that named a pair for the function.
  size_t Ruled(const std::string& function) const {
    size_t ruled = 0;
    std::ifstream log(scratch_ + "/decisions");
    for (std::string line; std::getline(log, line);) {
      const auto asked = ParseDecisionLine(line);
      ruled += asked && asked->function == function && !asked->leaves_nccl_alone ? 1 : 0;
    }
    return ruled;
  }

  std::map<Coverage, size_t> CallsByCoverage() const {
    std::map<Coverage, size_t> calls;
    const auto trace = ReadTrace(scratch_ + "/job.ctrace");
    EXPECT_TRUE(trace) << trace.error().message;
    if (!trace) return calls;
    for (const TraceRecord& record : trace->sections.at(0).records) {
      if (record.kind == static_cast<uint16_t>(RecordKind::kCollective)) ++calls[CoverageOf(record)];
    }
    return calls;
  }

  std::string scratch_;
};

size_t Chosen(const RunOutcome& outcome, const std::string& function, const std::string& protocol) {
  return static_cast<size_t>(
      std::count_if(outcome.choices.begin(), outcome.choices.end(), [&](const TuningLine& line) {
        return line.function == function && line.algorithm == "RING" && line.protocol == protocol;
      }));
}

// Rank 0 of each group logs NCCL's choice. The default group has all 16 ranks, and each node's group has 8.
// No pair of the rules is NCCL's own choice for a call of the program.
TEST_P(Nccl2, TakesRulesOnBothGroups) {
  const RunOutcome outcome = Run();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* function : {"AllReduce", "AllGather", "ReduceScatter"})
    EXPECT_GT(Ruled(function), 0u) << function;
  EXPECT_EQ(Chosen(outcome, "AllReduce", "LL"), Ruled("AllReduce") / 16) << outcome.output;
  EXPECT_EQ(Chosen(outcome, "AllGather", "SIMPLE"), Ruled("AllGather") / 8) << outcome.output;
  EXPECT_EQ(Chosen(outcome, "ReduceScatter", "LL"), Ruled("ReduceScatter") / 8) << outcome.output;
  auto calls = CallsByCoverage();
  // From 2.31 on there are 3 configured calls on each of 16 ranks.
  const size_t configured = GetParam().only_limits_channels() ? 3u * 16 : 0;
  EXPECT_EQ(calls[Coverage::kPinned], configured);
  EXPECT_GT(calls[Coverage::kTunable], 0u);
  EXPECT_EQ(calls.size(), 2u) << "no call of unknown coverage";
}

INSTANTIATE_TEST_SUITE_P(RealNccl, Nccl2,
                         testing::Values(NcclRelease{2, 24, 3}, NcclRelease{2, 28, 9}, NcclRelease{2, 32, 3}),
                         [](const auto& one) { return "Nccl2_" + std::to_string(one.param.minor); });

}  // namespace
}  // namespace dynamiccl::real_nccl
