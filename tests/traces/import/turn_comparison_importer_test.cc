// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "traces/format/measurement_file.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

constexpr char kSettings[] =
    R"({"schema": 1, "turn_steps": 3, "calls_of_step": 11, "steady_share": 0.9, "settings": [
  {"name": "default", "turns": 8, "step_ms": 20, "ratio": 1, "low": 1, "high": 1},
  {"name": "allgather=ring/simple/1", "turns": 8, "step_ms": 16, "ratio": 0.8, "low": 0.75, "high": 0.85},
  {"name": "reducescatter=pat/simple/8", "turns": 9, "step_ms": 22, "ratio": 1.1, "low": 1.0, "high": 1.2},
  {"name": "allgather=ring/ll/1,reducescatter=ring/ll/1", "turns": 8, "step_ms": 22, "ratio": 1.1, "low": 1, "high": 1.2},
  {"name": "ring/simple/4", "turns": 8, "step_ms": 18, "ratio": 0.9, "low": 0.85, "high": 0.95},
  {"name": "allgather=ring/ll/2", "turns": 3, "step_ms": 22, "ratio": 1.1, "low": null, "high": null}]})";

// A file in the temporary folder that is removed with the object.
class WrittenFile {
 public:
  explicit WrittenFile(const std::string& text)
      : path_(std::filesystem::path(testing::TempDir()) / ("ab_" + std::to_string(::getpid()) + ".json")) {
    std::ofstream(path_) << text;
  }
  ~WrittenFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Result<Imported> Import(const std::string& text) {
  const WrittenFile file(text);
  return ImportFile(file.path(), "");
}

TEST(TurnComparisonImporter, TakesSettingsOfOneCollectiveFromAComparison) {
  const auto imported = Import(kSettings);
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_TRUE(imported->measurements);
  const MeasurementFile& file = *imported->measurements;
  ASSERT_EQ(file.effects.size(), 2u);
  const MeasuredEffect& gather = file.effects[0];
  EXPECT_EQ(gather.topology, "unnamed");
  EXPECT_EQ(gather.collectives, 1 << static_cast<int>(Collective::kAllGather));
  EXPECT_EQ(gather.config, (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 1}));
  EXPECT_EQ(gather.channel_count, ChannelCount::kOne);
  EXPECT_DOUBLE_EQ(gather.log_ratio, std::log(0.8));
  EXPECT_NEAR(gather.error, (std::log(0.85) - std::log(0.75)) / 3.92, 1e-12);
  EXPECT_EQ(gather.steps, 16u);
  EXPECT_EQ(gather.role, Role::kUnknown);
  EXPECT_EQ(file.effects[1].config.algorithm, Algorithm::kPat);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("3 settings left out")));
  EXPECT_EQ(file.contexts[0].model.fabric.n_ranks, 2) << "the file does not state it";
  EXPECT_THAT(imported->unfilled, testing::Contains(testing::Field(&UnfilledField::field, "ranks")));
  EXPECT_TRUE(FormatMeasurements(file));
}

TEST(TurnComparisonImporter, KnowsRolesAndCollectivesOfTheWorkloadsOfAStepMap) {
  const std::string cell = std::string(R"({"cell": "asymmetric-nodes/3", "ranks": 4, "single": )") +
                           kSettings + R"(, "final": )" + kSettings + "}";
  const auto imported = Import(R"({"rounds": 8, "cells": [)" + cell + "]}");
  ASSERT_TRUE(imported) << imported.error().message;
  const MeasurementFile& file = *imported->measurements;
  ASSERT_EQ(file.contexts.size(), 1u);
  EXPECT_EQ(file.contexts[0].topology, "asymmetric-nodes");
  EXPECT_EQ(file.contexts[0].model.fabric.n_ranks, 4);
  EXPECT_THAT(imported->unfilled,
              testing::Not(testing::Contains(testing::Field(&UnfilledField::field, "ranks"))));
  ASSERT_EQ(file.effects.size(), 6u);
  EXPECT_EQ(file.effects[0].role, Role::kParameterGather);
  EXPECT_EQ(file.effects[0].phase, Phase::kUnknown) << "forward and backward";
  EXPECT_EQ(file.effects[1].role, Role::kGradientReduce);
  EXPECT_EQ(file.effects[1].phase, Phase::kBackward);
  const MeasuredEffect& all = file.effects[2];
  EXPECT_EQ(all.collectives, 1 << static_cast<int>(Collective::kAllGather) |
                                 1 << static_cast<int>(Collective::kReduceScatter));
  EXPECT_EQ(all.role, Role::kUnknown);
  EXPECT_EQ(all.channel_count, ChannelCount::kFew);
}

TEST(TurnComparisonImporter, NamesWhatIsWrong) {
  const auto damaged = Import(std::string(kSettings).substr(0, 300));
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("no comparison of settings"));
  const auto none = Import(
      R"({"turn_steps": 3, "calls_of_step": 1, "steady_share": 1, "settings": [{"name": "default"}]})");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no setting of one config"));
}

}  // namespace
}  // namespace dynamiccl
