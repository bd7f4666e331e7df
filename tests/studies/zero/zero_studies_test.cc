// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab tradeoffs` and `capped`: the search, the arms, and small runs of both commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "studies/zero/capped.h"
#include "studies/zero/tradeoffs.h"
#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

TEST(LargestThatFits, FindsTheBorderWithFewRuns) {
  for (int64_t border = 0; border <= 70; ++border) {
    int runs = 0;
    const auto found = LargestThatFits([&](int64_t number) -> Result<bool> {
      ++runs;
      return number <= border;
    });
    EXPECT_EQ(*found, border);
    EXPECT_LE(runs, 14);
  }
}

TEST(LargestThatFits, AFailureEndsIt) {
  const auto found = LargestThatFits([](int64_t number) -> Result<bool> {
    if (number == 4) return MakeError(ErrorKind::kPeerFailed, "rank 1 died");
    return true;
  });
  EXPECT_EQ(found.error().message, "rank 1 died");
}

TEST(Ladder, CountsTheParametersOfTheModel) {
  // The small model of the tests has 2 blocks of 64 at a sequence of 32: 12 x 64^2 + 13 x 64 a block.
  EXPECT_EQ(LadderRung{2}.parameters(32), 2 * 49984 + (512 + 32 + 2) * 64 + 256);
}

TEST(Tradeoffs, EveryChoiceHasTwoSidesAndNeedsItsRanks) {
  for (const int ranks : {1, 2}) {
    for (const Tradeoff& one : Tradeoffs({.bucket_bytes = "256K"}, "/tmp", ranks)) {
      EXPECT_NE(one.without.options, one.with.options) << one.choice;
      EXPECT_NE(one.without.name, one.with.name);
    }
  }
  EXPECT_EQ(Tradeoffs({}, "/tmp", 1).size() + 6, Tradeoffs({}, "/tmp", 2).size());
}

// Runs `dynamiccl-lab ...` with --json, and reads that back.
Json StudyJson(const std::string& words) {
  const zero::TemporaryFolder folder;
  const std::string json = (folder / "study.json").string();
  const std::string command = std::string(LAB_PROGRAM) + " " + words + " --data " + DYNAMICCL_TEST_TEXT +
                              " --json " + json + " > " + (folder / "log").string() + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream file(json);
  return Json::parse(file, nullptr, false);
}

TEST(Tradeoffs, MeasuredBytesAreThoseOfTheStages) {
  const Json study = StudyJson(
      "tradeoffs -n 2 --rounds 1 --steps 3 --layers 2 --hidden 64 --heads 2 --sequence 32 --bucket-bytes "
      "64K");
  ASSERT_TRUE(study.is_object());
  const auto row = [&](const char* choice, const char* side) -> const Json& {
    for (const Json& one : study.at("rows")) {
      if (one.at("choice") == choice) return one.at(side);
    }
    ADD_FAILURE() << choice;
    return study;
  };
  const auto peak = [&](const char* choice, const char* side, const char* category) {
    return row(choice, side).at("peak_bytes").at(category).get<int64_t>();
  };
  EXPECT_EQ(peak("optimizer states", "without", "moments"), 2 * peak("optimizer states", "with", "moments"));
  EXPECT_GT(peak("parameters", "without", "parameters"), 0);
  EXPECT_EQ(peak("parameters", "with", "parameters"), 0);  // fp32: the master weights are the shard
  EXPECT_GT(peak("parameters", "with", "gathered"), peak("gather", "without", "gathered"));
  EXPECT_GT(peak("buffers", "without", "buckets"), peak("buffers", "with", "buckets"));
  // The paper's volumes: 3 Psi less the root against 2 Psi.
  const double ratio = row("parameters", "with").at("sent_bytes_a_step").get<double>() /
                       row("parameters", "without").at("sent_bytes_a_step").get<double>();
  EXPECT_GT(ratio, 1.2);
  EXPECT_LT(ratio, 1.5);
  EXPECT_GT(row("gather", "with").at("step_ms").get<double>(), 0.0);
}

TEST(Capped, HigherStagesTrainLargerModels) {
  const Json study = StudyJson("capped -n 4 --memory 3M --steps 3 --batch 4 --sequence 16 --dtype bf16");
  ASSERT_TRUE(study.is_object());
  const Json& rows = study.at("rows");
  ASSERT_EQ(rows.size(), 4u);
  for (size_t stage = 1; stage < 4; ++stage)
    EXPECT_GE(rows[stage].at("parameters").get<int64_t>(), rows[stage - 1].at("parameters").get<int64_t>());
  EXPECT_GT(rows[3].at("parameters").get<int64_t>(), rows[0].at("parameters").get<int64_t>());
  for (const Json& row : rows) {
    EXPECT_LE(row.at("peak_bytes").at("total").get<int64_t>(), 3 << 20);
    EXPECT_GT(row.at("held_out_bits_per_byte").get<double>(), 0.0);
  }
}

}  // namespace
}  // namespace dynamiccl
