// SPDX-License-Identifier: Apache-2.0
// Compares the estimator with the figures of the ZeRO paper, and tests its answers to wrong input.
#include "zero_workloads/estimate/estimate_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "zero_workloads/estimate/paper_figures.h"
#include "zero_workloads/estimate/training_time.h"

namespace dynamiccl::zero {
namespace {

using testing::HasSubstr;

// Compares all 54 numbers of Table 1, all 20 of Table 2, and those of Figure 1 and of the text. The two
// numbers of section 6.1 count one byte per element where section 3.2 counts two. Their remark states this.
TEST(Estimate, GivesThePapersFigures) {
  std::map<std::string, int> of_source;
  int differ = 0;
  for (const PaperFigure& figure : PaperFigures()) {
    ++of_source[figure.source];
    if (figure.source == "section 6.1") {
      EXPECT_NEAR(figure.estimate / 2, figure.printed, figure.last_digit) << figure.what;
      EXPECT_FALSE(figure.agrees());
      EXPECT_THAT(figure.remark, HasSubstr("1 byte"));
      ++differ;
      continue;
    }
    EXPECT_TRUE(figure.agrees()) << figure.source << ", " << figure.what << ": " << figure.estimate
                                 << ", printed " << figure.printed;
  }
  EXPECT_EQ(differ, 2);
  EXPECT_EQ(of_source["Table 1"], 54);
  EXPECT_EQ(of_source["Table 2"], 20);
  EXPECT_EQ(of_source["Figure 1"], 4);
  EXPECT_EQ(of_source["fp32 example"], 4);
  EXPECT_EQ(of_source["section 9"], 1);
}

TEST(Estimate, ATrillionParametersFitOn1024RanksOf32GbInStage3Alone) {
  EstimateSettings settings;
  settings.parameters = 1e12;
  settings.ranks = 1024;
  const auto estimates = EstimateOf(settings);
  EXPECT_LT(estimates[3].states.total(), 16e9);
  EXPECT_GT(estimates[2].states.total(), 2000e9);
}

// The paper rounds its sizes, and its tables do not count embeddings.
TEST(Estimate, ThePapersModelsHaveThePapersSizes) {
  EXPECT_EQ(PaperRuns().size(), 51u);
  for (const PaperRun& run : PaperRuns()) {
    const auto printed = ParseParameters(run.model);
    ASSERT_TRUE(printed) << run.model;
    if (run.model == "1.38B") continue;  // its 40 blocks of width 1536 have 1.13 billion
    EXPECT_NEAR(ParametersOf(run.shape()) / *printed, 1, 0.12) << run.model;
    EXPECT_EQ(run.data_parallel() * run.batch, run.total_batch) << run.model;
  }
}

TEST(Estimate, OneParameterCountsOnceInStage0AndStatesNeverGrowWithTheStage) {
  for (const StateBytes& bytes : {kMixedPrecisionAdam, kFp32Adam}) {
    for (const int64_t ranks : {1, 2, 3, 7, 64, 1000}) {
      EXPECT_DOUBLE_EQ(StatesOf(1, bytes, 0, ranks).total(), 16);
      for (int stage = 1; stage <= 3; ++stage) {
        EXPECT_LE(StatesOf(1, bytes, stage, ranks).total(), StatesOf(1, bytes, stage - 1, ranks).total());
        EXPECT_NEAR(StatesOf(MostParameters(32e9, bytes, stage, ranks), bytes, stage, ranks).total(), 32e9,
                    1);
      }
      EXPECT_DOUBLE_EQ(StatesOf(1, bytes, 3, ranks).total() * static_cast<double>(ranks), 16);
    }
  }
}

// Returns the bytes of states per parameter in each stage, on 4 ranks.
std::vector<double> BytesOfParameter(EstimateSettings settings) {
  settings.parameters = 1;
  settings.ranks = 4;
  std::vector<double> bytes;
  for (const StageEstimate& stage : EstimateOf(settings)) bytes.push_back(stage.states.total());
  return bytes;
}

// The usual account of mixed precision: (2 + 4 alpha + K) bytes per parameter. Each stage divides one more of
// these terms. An optimizer with k fp32 tensors has K = 4 k.
TEST(Estimate, OptimizerAndGradientsCountAsTheyAreStored) {
  using testing::ElementsAre;
  // Two fp32 tensors of the optimizer, and fp32 gradients: "2 + 4 + 8 = 14 bytes".
  EXPECT_THAT(BytesOfParameter({.optimizer_bytes = 8, .alpha = 1}),
              ElementsAre(14, 6 + 8 / 4.0, 2 + 12 / 4.0, 14 / 4.0));
  // One fp32 tensor of the optimizer: 2 + 4 + 4/N, 2 + 8/N and (2 + 8)/N bytes in stages 1 to 3.
  EXPECT_THAT(BytesOfParameter({.optimizer_bytes = 4, .gradient_type = "fp32"}),
              ElementsAre(10, 6 + 4 / 4.0, 2 + 8 / 4.0, 10 / 4.0));
  // bf16 gradients take 2 of the 16 bytes. With sums in fp32 they take 4 of 18.
  EXPECT_THAT(BytesOfParameter({}), ElementsAre(16, 4 + 12 / 4.0, 2 + 14 / 4.0, 16 / 4.0));
  EXPECT_THAT(BytesOfParameter({.accumulation_type = "fp32"}),
              ElementsAre(18, 6 + 12 / 4.0, 2 + 16 / 4.0, 18 / 4.0));
  EXPECT_EQ(BytesOfParameter({.gradient_type = "fp32", .accumulation_type = "model"})[0], 16);
  EXPECT_EQ(BytesOfParameter({.alpha = 1.5})[0], 20);
  EXPECT_EQ(BytesOfParameter({.dtype = "fp32", .accumulation_type = "model"})[0], 16);
  EXPECT_EQ(BytesOfParameter({.optimizer_bytes = 0})[0], 4);
  // fp32 sums are kept beside the bf16 gradients. Stage 1 keeps its gradients only until they are added.
  EXPECT_THAT(BytesOfParameter({.accumulation_type = "fp32", .accumulation = "local"}),
              ElementsAre(20, 6 + 12 / 4.0, 6 + 14 / 4.0, 4 + 16 / 4.0));
  EXPECT_THAT(BytesOfParameter({.accumulation_type = "model", .accumulation = "sharded"}),
              ElementsAre(18, 4 + 12 / 4.0, 2 + 18 / 4.0, 20 / 4.0));
}

// Sums over micro-steps stay on the rank, so their type does not change the traffic. The type in which ranks
// sum gradients does: fp32 takes 4 bytes per element of gradients, not 2.
TEST(Estimate, TheGradientTypeIsSent) {
  const auto sent = [](EstimateSettings settings) {
    settings.parameters = 1;
    settings.ranks = 1000000;
    std::vector<double> bytes;
    for (const StageEstimate& stage : EstimateOf(settings))
      bytes.push_back(std::round(stage.sent * 100) / 100);
    return bytes;
  };
  using testing::ElementsAre;
  EXPECT_THAT(sent({}), ElementsAre(4, 4, 4, 6));
  EXPECT_THAT(sent({.gradient_type = "fp32"}), ElementsAre(8, 6, 6, 8));
  EXPECT_THAT(sent({.accumulation_type = "fp32"}), ElementsAre(4, 4, 4, 6));
}

// The two times with recomputation that Narayanan et al. print (SC 2021, section 5.1).
TEST(Estimate, TimeToTrainIsAsPublished) {
  const auto days = [](const TrainingRun& run) { return TrainingSeconds(run) / 86400; };
  EXPECT_NEAR(days({175e9, 300e9, true, 1024, 140e12}), 34, 0.5);
  EXPECT_NEAR(days({1e12, 450e9, true, 3072, 163e12}), 84, 1);
  EXPECT_DOUBLE_EQ(days({1e12, 450e9, false, 3072, 163e12}) / days({1e12, 450e9, true, 3072, 163e12}), 0.75);
}

TEST(Estimate, CheckpointsAndTheirPartsTakeLess) {
  const TransformerShape shape{.layers = 24, .hidden = 1024};
  const auto total = [&](Checkpoints checkpoints) {
    return ActivationsOf(shape, 4, 8, 2, checkpoints).total();
  };
  EXPECT_GT(total(Checkpoints::kNone), total(Checkpoints::kEveryBlock));
  EXPECT_GT(total(Checkpoints::kEveryBlock), total(Checkpoints::kPartitioned));
  EXPECT_GT(total(Checkpoints::kPartitioned), total(Checkpoints::kPartitionedCpu));
  EXPECT_DOUBLE_EQ(ActivationsOf(shape, 4, 8, 2, Checkpoints::kPartitionedCpu).on_host,
                   ActivationsOf(shape, 4, 8, 2, Checkpoints::kPartitioned).kept);
}

// Returns the output, or the error and its hint.
std::string Say(const std::vector<std::string>& options) {
  CLI::App app;
  EstimateCommand command;
  command.Register(app);
  try {
    app.parse(std::vector<std::string>(options.rbegin(), options.rend()));
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  const auto text = command.Run();
  return text ? *text : Describe(text.error());
}

TEST(Estimate, PrintsATableByStage) {
  const std::string text =
      Say({"--preset", "100B", "--config", "C4", "--device-memory", "32GB", "--dtype", "fp16"});
  EXPECT_THAT(text, HasSubstr("25 data-parallel x 16 tensor-parallel ranks; 32 sequences of 1024 a rank, "
                              "checkpoints: partitioned"));
  EXPECT_THAT(text, HasSubstr("does not fit"));
  EXPECT_THAT(text, HasSubstr("C4 is stage 2 of these"));
  const auto json = nlohmann::json::parse(Say({"--parameters", "7.5B", "--ranks", "64", "--json"}));
  EXPECT_DOUBLE_EQ(json["bytes_by_stage"][1]["optimizer"].get<double>(), 7.5e9 * 12 / 64);
  EXPECT_TRUE(json["bytes_by_stage"][1]["activations"].is_null());
  EXPECT_DOUBLE_EQ(json["bytes_by_stage"][2]["sent_a_step"].get<double>(), 2 * 7.5e9 * 2 * 63 / 64);
  EXPECT_DOUBLE_EQ(json["bytes_by_stage"][3]["sent_a_step"].get<double>(), 3 * 7.5e9 * 2 * 63 / 64);
  const auto untied =
      nlohmann::json::parse(Say({"--layers", "2", "--hidden", "8", "--untied-head", "--json"}));
  const auto tied = nlohmann::json::parse(Say({"--layers", "2", "--hidden", "8", "--json"}));
  EXPECT_DOUBLE_EQ(untied["parameters"].get<double>() - tied["parameters"].get<double>(), 8 * 50257);
  EXPECT_THAT(Say({"--paper"}), HasSubstr("7.5B, 64 ranks, P_os "));
  const auto paper = nlohmann::json::parse(Say({"--paper", "--json"}));
  EXPECT_EQ(paper["schema"], 1);
  ASSERT_EQ(paper["figures"].size(), PaperFigures().size());
  for (const auto& figure : paper["figures"]) {
    EXPECT_TRUE(figure["agrees"].get<bool>() || !figure["remark"].get<std::string>().empty()) << figure;
  }
}

TEST(Estimate, PrintsTheTimeToTrain) {
  const std::vector<std::string> run = {"--parameters", "175B", "--ranks",  "128", "--tensor-parallel", "8",
                                        "--tokens",     "300B", "--tflops", "140"};
  EXPECT_THAT(Say(run),
              HasSubstr("33.91 days to train on 300 billion tokens: 8 operations for each parameter "
                        "and token (2 of them recompute), 1024 ranks at 140 TFLOPS"));
  std::vector<std::string> json = run;
  json.emplace_back("--json");
  EXPECT_NEAR(nlohmann::json::parse(Say(json))["training_days"].get<double>(), 33.9, 0.05);
  EXPECT_FALSE(nlohmann::json::parse(Say({"--parameters", "1B", "--json"})).contains("training_days"));
  EXPECT_THAT(Say({"--paper"}), HasSubstr("1T on 1024 GPUs, scaled from Bert-Large: time to train"));
}

TEST(Estimate, PrintsWhatOneParameterTakes) {
  EXPECT_THAT(Say({"--parameters", "1B"}),
              HasSubstr("12 bytes of optimizer states (K), 2 of gradients (alpha 0.5)"));
  const auto json = nlohmann::json::parse(
      Say({"--parameters", "1B", "--optimizer-bytes", "6", "--gradient-type", "fp32", "--json"}));
  EXPECT_EQ(json["optimizer_bytes_of_parameter"], 6);
  EXPECT_EQ(json["gradient_bytes_of_parameter"], 4);
}

TEST(Estimate, WrongInputIsNamed) {
  EXPECT_THAT(Say({"--parameters", "1T", "--optimizer-bytes", "-1"}),
              HasSubstr("--optimizer-bytes -1 is no"));
  EXPECT_THAT(Say({"--parameters", "1T", "--alpha", "0"}), HasSubstr("--alpha 0 must be positive"));
  EXPECT_THAT(Say({"--parameters", "1T", "--alpha", "nan"}), HasSubstr("must be positive"));
  EXPECT_THAT(Say({"--parameters", "1T", "--alpha", "1", "--accumulation-type", "fp32"}),
              HasSubstr("excludes"));
  EXPECT_THAT(Say({"--parameters", "1T", "--gradient-type", "fp8"}), HasSubstr("model or fp32"));
  EXPECT_THAT(Say({"--parameters", "1T", "--accumulation-type", "bf16"}), HasSubstr("none, model or fp32"));
  EXPECT_THAT(Say({"--parameters", "1T", "--accumulation", "local"}), HasSubstr("add --accumulation-type"));
  EXPECT_THAT(Say({"--parameters", "1T", "--accumulation-type", "fp32", "--accumulation", "none"}),
              HasSubstr("in_place, local or sharded"));
  EXPECT_THAT(Say({"--parameters", "1T", "--tokens", "300B"}), HasSubstr("--tokens 300B --tflops 140"));
  EXPECT_THAT(Say({"--parameters", "1T", "--tflops", "140"}), HasSubstr("needs --tokens and --tflops"));
  EXPECT_THAT(Say({"--parameters", "1T", "--tokens", "1B", "--tflops", "-3"}), HasSubstr("must be positive"));
  EXPECT_THAT(Say({"--parameters", "1T", "--tokens", "all", "--tflops", "3"}),
              HasSubstr("all is no number of tokens"));
  EXPECT_THAT(Say({}), HasSubstr("nothing says how large the model is"));
  EXPECT_THAT(Say({"--parameters", "many"}), HasSubstr("many is no number of parameters"));
  EXPECT_THAT(Say({"--parameters", "-3B"}), HasSubstr("-3B is no number"));
  EXPECT_THAT(Say({"--parameters", "1T", "--dtype", "int8"}), HasSubstr("--dtype int8 is none"));
  EXPECT_THAT(Say({"--parameters", "1T", "--ranks", "0"}), HasSubstr("at least 1"));
  EXPECT_THAT(Say({"--parameters", "1T", "--checkpoints", "none"}), HasSubstr("needs the model's shape"));
  EXPECT_THAT(Say({"--parameters", "1T", "--batch", "4"}), HasSubstr("--batch needs the model's shape"));
  EXPECT_THAT(Say({"--preset", "8B", "--config", "C1", "--checkpoints", "none"}),
              HasSubstr("give one of them"));
  EXPECT_THAT(Say({"--paper", "--ranks", "4"}), HasSubstr("excludes"));
  EXPECT_THAT(Say({"--layers", "3"}), HasSubstr("must be positive"));
  EXPECT_THAT(Say({"--preset", "3B"}), HasSubstr("one of 1.5B, 8B"));
  EXPECT_THAT(Say({"--preset", "8B", "--config", "C9"}), HasSubstr("C1, C2"));
  EXPECT_THAT(Say({"--preset", "8B", "--checkpoints", "all"}), HasSubstr("partitioned_cpu"));
}

}  // namespace
}  // namespace dynamiccl::zero
