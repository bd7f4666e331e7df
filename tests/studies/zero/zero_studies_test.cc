// SPDX-License-Identifier: Apache-2.0
// Tests `dynamiccl-lab tradeoffs` and `capped`: the search, the arms, and small runs of both commands.
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
    for (int64_t guess = 1; guess <= 70; ++guess) {
      int runs = 0;
      const auto fits = [&](int64_t number) -> Result<bool> {
        EXPECT_GE(number, 1);
        ++runs;
        return number <= border;
      };
      EXPECT_EQ(*LargestThatFits(fits, guess), border) << guess;
      EXPECT_LE(runs, 14);
    }
  }
}

TEST(LargestThatFits, AGoodGuessSavesRuns) {
  int runs = 0;
  const auto found = LargestThatFits(
      [&](int64_t number) -> Result<bool> {
        ++runs;
        return number <= 61;
      },
      60);
  EXPECT_EQ(*found, 61);
  EXPECT_LE(runs, 4);
}

TEST(LargestThatFits, AFailureEndsIt) {
  const auto found = LargestThatFits([](int64_t number) -> Result<bool> {
    if (number == 4) return MakeError(ErrorKind::kPeerFailed, "rank 1 died");
    return true;
  });
  EXPECT_EQ(found.error().message, "rank 1 died");
}

TEST(Ladder, CountsTheParametersOfTheModel) {
  // The tests' small model has 2 blocks of width 64 and a sequence length of 32. Each block has 12 x 64^2 +
  // 13 x 64 parameters.
  EXPECT_EQ((LadderRung{16, {.layers = 2, .heads = 4}}.parameters(32)),
            2 * 49984 + (512 + 32 + 2) * 64 + 256);
}

TEST(Ladder, NeighboursDifferByATenthAtMostWhereModelsAreNotTiny) {
  for (int64_t number = 24; number < 200; ++number) {
    const double larger = static_cast<double>(LadderRung{number + 1, {}}.parameters(128));
    EXPECT_LT(larger / static_cast<double>(LadderRung{number, {}}.parameters(128)), 1.1) << number;
  }
}

TEST(Tradeoffs, EveryChoiceHasTwoSidesAndNeedsItsRanks) {
  for (const int ranks : {1, 2}) {
    for (const Tradeoff& one : Tradeoffs({.bucket_bytes = "256K"}, "/tmp", ranks)) {
      EXPECT_NE(one.without.options, one.with.options) << one.choice;
      EXPECT_NE(one.without.name, one.with.name);
    }
  }
  EXPECT_EQ(Tradeoffs({}, "/tmp", 1).size() + 7, Tradeoffs({}, "/tmp", 2).size());
}

// Runs `dynamiccl-lab ...` with --json. Returns the file that it wrote.
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
  EXPECT_EQ(peak("parameters", "with", "parameters"), 0);  // in fp32 the master weights are the shard
  EXPECT_GT(peak("parameters", "with", "gathered"), peak("gather", "without", "gathered"));
  EXPECT_GT(peak("buffers", "without", "buckets"), peak("buffers", "with", "buckets"));
  // The paper's volumes are 3 Psi and 2 Psi. Here the former is 3 Psi - root.
  const double ratio = row("parameters", "with").at("sent_bytes_a_step").get<double>() /
                       row("parameters", "without").at("sent_bytes_a_step").get<double>();
  EXPECT_GT(ratio, 1.2);
  EXPECT_LT(ratio, 1.5);
  EXPECT_GT(row("gather", "with").at("step_ms").get<double>(), 0.0);
}

int64_t ParametersOf(const Json& row) {
  return row.at("parameters").get<int64_t>();
}

// The bounds follow from the paper. In fp32 each parameter takes 16 bytes, and the 4 ranks divide 8 of them
// in stage 1, 12 in stage 2 and all in stage 3.
TEST(Capped, HigherStagesTrainLargerModels) {
  const Json study =
      StudyJson("capped -n 4 --memory 2M --steps 4 --batch 4 --sequence 16 --eval-every 2 --seeds 2");
  ASSERT_TRUE(study.is_object());
  const Json& rows = study.at("rows");
  ASSERT_EQ(rows.size(), 4u);
  const double bytes_of_parameter[] = {16, 10, 7, 4};
  for (size_t stage = 0; stage < 4; ++stage) {
    const Json& row = rows[stage];
    if (stage > 0) {
      EXPECT_GT(ParametersOf(row), ParametersOf(rows[stage - 1])) << stage;
    }
    EXPECT_LE(static_cast<double>(ParametersOf(row)), (2 << 20) / bytes_of_parameter[stage]) << stage;
    EXPECT_LE(row.at("peak_bytes").at("total").get<int64_t>(), 2 << 20);
    ASSERT_EQ(row.at("seeds").size(), 2u);
    EXPECT_NE(row.at("seeds")[0].at("held_out_bits_per_byte"),
              row.at("seeds")[1].at("held_out_bits_per_byte"));
    for (const Json& seed : row.at("seeds")) {
      ASSERT_EQ(seed.at("evaluations").size(), 2u);
      EXPECT_EQ(seed.at("evaluations")[0].at("steps"), 2);
      EXPECT_EQ(seed.at("evaluations")[1].at("steps"), 4);
      EXPECT_EQ(seed.at("evaluations")[1].at("held_out_bits_per_byte"), seed.at("held_out_bits_per_byte"));
      EXPECT_GT(seed.at("held_out_bits_per_byte").get<double>(), 0.0);
    }
  }
}

// Buckets for a quarter of the gradients leave room for a larger model than one bucket for all gradients.
TEST(Capped, SmallerBucketsLeaveRoomForALargerModel) {
  const std::string run = "capped -n 1 --memory 1M --batch 1 --steps 1 --layers 1 --sequence 16";
  const Json one = StudyJson(run), small = StudyJson(run + " --bucket-bytes 16K");
  ASSERT_TRUE(one.is_object() && small.is_object());
  EXPECT_GT(ParametersOf(small.at("rows")[2]), ParametersOf(one.at("rows")[2]));
}

// With one sequence per rank, the steps need little memory for activations. The evaluation must not need
// more.
TEST(Capped, EvaluationTakesNoMoreMemoryThanTheStepsOfASmallBatch) {
  const Json study = StudyJson("capped -n 2 --memory 2M --batch 2 --steps 2 --layers 2");
  ASSERT_TRUE(study.is_object());
  for (const Json& row : study.at("rows")) {
    EXPECT_GT(ParametersOf(row), 50000) << row;
    EXPECT_GT(row.at("seeds").at(0).at("held_out_bits_per_byte").get<double>(), 0.0);
  }
}

}  // namespace
}  // namespace dynamiccl
