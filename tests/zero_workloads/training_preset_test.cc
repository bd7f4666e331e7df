// SPDX-License-Identifier: Apache-2.0
// Tests models by name: what the name sets, what overrides it, and from which amount of memory on the model
// is refused.
#include "zero_workloads/training_preset.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/zero_workloads/rank_processes.h"
#include "zero_workloads/estimate/estimate_command.h"
#include "zero_workloads/estimate/memory_estimate.h"
#include "zero_workloads/estimate/model_preset.h"
#include "zero_workloads/estimate/paper_figures.h"
#include "zero_workloads/ineffective_options.h"

namespace dynamiccl::zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Options = std::set<std::string>;

TrainingSettings With(const std::string& preset, int world, const Options& given = {},
                      TrainingSettings settings = {}) {
  const auto is_given = [&given](const char* option) { return given.contains(option); };
  const auto status = TakeModelPreset(preset, is_given, world, &settings);
  EXPECT_TRUE(status) << status.error().message;
  return settings;
}

TEST(ModelPresets, AreThePapersFirstRunsAndGpt2) {
  for (const PaperRun& run : PaperRuns()) {
    const auto preset = FindModelPreset(run.model);
    ASSERT_TRUE(preset) << run.model;
    const auto first = std::find_if(PaperRuns().begin(), PaperRuns().end(),
                                    [&](const PaperRun& one) { return one.model == run.model; });
    EXPECT_EQ(preset->layers, first->layers);
    EXPECT_EQ(preset->hidden, first->hidden);
    EXPECT_EQ(preset->hidden % preset->heads, 0);
  }
  // The published sizes with a tied head are 124, 355, 774 and 1558 million parameters.
  const std::vector<std::pair<const char*, double>> sizes{
      {"gpt2", 124e6}, {"gpt2-medium", 355e6}, {"gpt2-large", 774e6}, {"gpt2-xl", 1558e6}};
  for (const auto& [name, parameters] : sizes) {
    const ModelPreset preset = *FindModelPreset(name);
    EstimateSettings estimate;
    estimate.shape = TransformerShape{preset.layers, preset.hidden, preset.sequence, 50257, true};
    EXPECT_NEAR(ParametersOf(estimate) / parameters, 1, 0.01) << name;
  }
}

TEST(TrainingPreset, SetsShapeAndBatchOfAllDataRanks) {
  const TrainingSettings settings = With("gpt2-medium", 4);
  EXPECT_EQ(settings.model.layers, 24);
  EXPECT_EQ(settings.model.hidden, 1024);
  EXPECT_EQ(settings.model.heads, 16);
  EXPECT_EQ(settings.model.sequence, 1024);
  EXPECT_EQ(settings.batch, 4);
  const ModelPreset paper = *FindModelPreset("100B");
  const TrainingSettings large = With("100B", 2 * paper.tensor_parallel);
  EXPECT_EQ(large.tensor_parallel, paper.tensor_parallel);
  EXPECT_EQ(large.batch, 2 * paper.batch);
}

TEST(TrainingPreset, OptionsThatAreGivenWin) {
  TrainingSettings own;
  own.model.layers = 3;
  own.batch = 10;
  own.tensor_parallel = 1;
  const TrainingSettings settings = With("100B", 2, {"--layers", "--batch", "--tensor-parallel"}, own);
  EXPECT_EQ(settings.model.layers, 3);
  EXPECT_EQ(settings.batch, 10);
  EXPECT_EQ(settings.tensor_parallel, 1);
  EXPECT_EQ(settings.model.hidden, FindModelPreset("100B")->hidden);
}

TEST(TrainingPreset, WithoutANameNothingChanges) {
  const TrainingSettings settings = With("", 4);
  EXPECT_EQ(settings.Canonical(), TrainingSettings{}.Canonical());
  EXPECT_TRUE(CheckPresetFits("", settings, 4, 4, 0));
}

TEST(TrainingPreset, AnUnknownNameIsAnErrorWithAllNames) {
  TrainingSettings settings;
  const auto status = TakeModelPreset(
      "gpt3", [](const char*) { return false; }, 1, &settings);
  ASSERT_FALSE(status);
  EXPECT_THAT(Describe(status.error()), AllOf(HasSubstr("gpt3"), HasSubstr("gpt2-xl"), HasSubstr("100B")));
}

// The limit is the memory of this machine. All its ranks together must fit into it.
TEST(TrainingPreset, IsRefusedFromTheEstimateOn) {
  TrainingSettings settings = With("gpt2", 2);
  settings.stage = 2;
  EstimateSettings estimate;
  estimate.shape = TransformerShape{12, 768, 1024, settings.model.vocabulary, false};
  estimate.dtype = "fp32";
  estimate.ranks = 2;
  estimate.checkpoints = Checkpoints::kNone;
  const auto bytes = static_cast<int64_t>(2 * EstimateOf(estimate)[2].total());
  EXPECT_TRUE(CheckPresetFits("gpt2", settings, 2, 2, bytes + 1));
  EXPECT_TRUE(CheckPresetFits("gpt2", settings, 2, 2, -1));
  EXPECT_TRUE(CheckPresetFits("gpt2", settings, 2, 1, bytes / 2 + 1));
  const auto refused = CheckPresetFits("gpt2", settings, 2, 2, bytes - 1000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
  EXPECT_THAT(Describe(refused.error()),
              AllOf(HasSubstr("--preset gpt2 in stage 2"), HasSubstr("2 rank(s) of this machine"),
                    HasSubstr("dynamiccl zero estimate --layers 12 --hidden 768")));
}

// Local sums of gradients take 4 bytes per parameter on each rank. The blocks have 85 million parameters.
TEST(TrainingPreset, SumsOverMicroStepsCount) {
  TrainingSettings settings = With("gpt2", 2);
  settings.stage = 2;
  const auto fits = [&](int64_t bytes) { return bool(CheckPresetFits("gpt2", settings, 2, 1, bytes)); };
  int64_t bytes = int64_t{1} << 28;
  while (!fits(bytes)) bytes += int64_t{1} << 26;
  settings.micro_steps = 2;
  EXPECT_FALSE(fits(bytes)) << "sums of shards";
  EXPECT_TRUE(fits(bytes + 2 * 100'000'000 + (int64_t{1} << 26)));
  settings.accumulation = "local";
  EXPECT_FALSE(fits(bytes + 2 * 100'000'000));
  EXPECT_TRUE(fits(bytes + 4 * 100'000'000));
}

// Returns the GB per rank that the `zero estimate` command in a refusal prints for a stage.
std::string EstimatedBy(const std::string& refusal, int stage) {
  const std::string begin = "dynamiccl zero estimate ";
  std::istringstream rest(refusal.substr(refusal.find(begin) + begin.size()));
  std::vector<std::string> words = {"--json"};
  for (std::string word; rest >> word;) words.insert(words.begin(), word);
  CLI::App app;
  EstimateCommand command;
  command.Register(app);
  app.parse(words);
  const auto json = nlohmann::json::parse(command.Run().value());
  return fmt::format("{:.3g} GB",
                     json["bytes_by_stage"][static_cast<size_t>(stage)]["total"].get<double>() / 1e9);
}

TEST(TrainingPreset, TheCommandOfARefusalPrintsWhatWasRefused) {
  for (int stage = 0; stage < 4; ++stage) {
    for (const char* accumulation : {"default", "local"}) {
      for (const char* type : {"fp32", "model"}) {
        for (const int64_t bucket : {int64_t{4} << 20, int64_t{64} << 20, kOneBucketForAll}) {
          TrainingSettings settings = With("gpt2", 2);
          settings.dtype = "bf16";
          settings.stage = stage;
          settings.micro_steps = 2;
          settings.accumulation = accumulation;
          settings.accumulation_type = type;
          settings.bucket_bytes = bucket;
          const auto refused = CheckPresetFits("gpt2", settings, 2, 2, 0);
          ASSERT_FALSE(refused);
          const std::string text = Describe(refused.error());
          EXPECT_THAT(text, HasSubstr("needs about " + EstimatedBy(text, stage) + " on each rank"));
        }
      }
    }
  }
}

TEST(TrainingPreset, AMemoryCapIsOfEachRank) {
  TrainingSettings settings = With("gpt2", 2);
  settings.residual.memory_cap = 1 << 20;
  const auto refused = CheckPresetFits("gpt2", settings, 2, 2, int64_t{1} << 50);
  ASSERT_FALSE(refused);
  EXPECT_THAT(Describe(refused.error()), HasSubstr("a rank may take 0.00105 GB"));
}

// Stage 0 takes 16 bytes per parameter, and 8 of them are states. The 12 blocks have 12 x 768 x 768
// parameters each.
TEST(TrainingPreset, OffloadedStatesTakeNoMemoryOfTheDevice) {
  TrainingSettings settings = With("gpt2", 1, {"--sequence", "--batch"});
  settings.model.sequence = 64;
  settings.batch = 1;
  settings.residual.activation_checkpoints = "full";
  settings.residual.memory_cap = 1'300'000'000;
  EXPECT_FALSE(CheckPresetFits("gpt2", settings, 1, 1, 0));
  for (const char* place : {"cpu", "nvme:/tmp"}) {
    settings.offload_optimizer = place;
    EXPECT_TRUE(CheckPresetFits("gpt2", settings, 1, 1, 0)) << place;
  }
  // Without a limit for the device, the ranks share the host's memory. States in host memory then count too.
  settings.residual.memory_cap = 0;
  EXPECT_TRUE(CheckPresetFits("gpt2", settings, 1, 1, 1'300'000'000));
  settings.offload_optimizer = "cpu";
  EXPECT_FALSE(CheckPresetFits("gpt2", settings, 1, 1, 1'300'000'000));
}

TEST(IneffectiveOptions, AreNotedIfAFileOfAnotherProgramHasThemAndRefusedIfTheUserDoes) {
  TrainingSettings settings;
  settings.loss_scale = "8";
  const auto given = [](const char* option) { return option == std::string("--first-loss-scale"); };
  const std::map<std::string, std::string> translated = {
      {"--first-loss-scale", "ds.json: fp16.initial_scale_power"}};
  EXPECT_EQ(NotesOfIneffectiveOptions(given, translated, settings).value(),
            std::vector<std::string>{
                "ds.json: fp16.initial_scale_power: makes no difference: the loss scale is fixed"});
  EXPECT_FALSE(NotesOfIneffectiveOptions(given, {}, settings));
  settings.loss_scale = "dynamic";
  EXPECT_TRUE(NotesOfIneffectiveOptions(given, translated, settings).value().empty());
}

// Sharded sums are in fp32 anyway, so an option that asks for fp32 is no error.
TEST(IneffectiveOptions, ThatStateWhatHappensAnywayAreFine) {
  TrainingSettings settings;
  settings.stage = 2;
  settings.micro_steps = 2;
  const auto given = [](const char* option) { return option == std::string("--accumulation-type"); };
  EXPECT_TRUE(NotesOfIneffectiveOptions(given, {}, settings));
  settings.accumulation_type = "model";
  EXPECT_FALSE(NotesOfIneffectiveOptions(given, {}, settings));
}

TEST(TrainingPreset, RunsWhereItFitsAndSaysWhatItNeedsWhereNot) {
  const RankOutcome runs =
      RunRanks({.arguments = {"train", "--preset", "gpt2", "--layers", "1", "--hidden", "64", "--heads", "2",
                              "--sequence", "32", "--steps", "1", "--data", DYNAMICCL_TEST_TEXT}})
          .front();
  EXPECT_EQ(runs.exit_code, 0) << runs.output;
  const RankOutcome refused = RunRanks({.arguments = {"train", "--preset", "40B", "--tensor-parallel", "1",
                                                      "--steps", "1", "--data", DYNAMICCL_TEST_TEXT}})
                                  .front();
  EXPECT_EQ(refused.exit_code, 3) << refused.output;
  EXPECT_THAT(refused.output,
              AllOf(HasSubstr("--preset 40B in stage 0 needs about"), HasSubstr("zero estimate")));
}

}  // namespace
}  // namespace dynamiccl::zero
