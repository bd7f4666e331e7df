// SPDX-License-Identifier: Apache-2.0
#include "agents/policy_export.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <cstring>
#include <filesystem>

#include "agents/eval_command.h"
#include "agents/train_command.h"
#include "src/policy/policy_file.h"
#include "tests/support/sample_policy.h"
#include "tests/support/synthetic_sweep.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl::agents {
namespace {

class PolicyExport : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "policy_export_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_TRUE(WriteMeasurementFile(Path("a.measurements"), test::MakeSweep({.topologies = 2})));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  TrainSettings Short(const std::string& output) const {
    TrainSettings settings;
    settings.measurements = {Path("a.measurements")};
    settings.output = Path(output);
    settings.hold_out = {3, {"t1"}};
    settings.structure_iterations = 4;
    settings.config_iterations = 20;
    return settings;
  }

  std::filesystem::path folder_;
};

TEST_F(PolicyExport, TrainingWritesAFileThatReadsBackAndSaysWhereItCameFrom) {
  const Status status = Train(Short("p.dcpolicy"));
  ASSERT_TRUE(status) << status.error().message;
  const auto policy = ReadPolicyFile(Path("p.dcpolicy"));
  ASSERT_TRUE(policy) << policy.error().message;
  const Provenance provenance = ParseProvenance((*policy)->provenance);
  EXPECT_EQ(provenance.hold_out.sizes, 3);
  EXPECT_EQ(provenance.hold_out.topologies, std::vector<std::string>{"t1"});
  ASSERT_EQ(provenance.inputs.size(), 1u);
  EXPECT_EQ(provenance.inputs[0].path, "a.measurements");
  EXPECT_EQ(TrainingDataId(provenance), (*policy)->training_data_id);
}

TEST_F(PolicyExport, GoldenVectorsThatDifferLeaveNoFile) {
  const auto policy = test::MakeRandomPolicy(4);
  policy->tensors.golden_residuals[100][1] += 1;
  EXPECT_FALSE(ExportPolicy(Path("bad.dcpolicy"), *policy));
  EXPECT_FALSE(std::filesystem::exists(Path("bad.dcpolicy")));
}

// Effects of two configs on three fabrics.
MeasurementFile SomeEffects() {
  MeasurementFile file;
  for (int fabric = 0; fabric < 3; ++fabric) {
    file.contexts.push_back({"f" + std::to_string(fabric), {}});
    for (const ChannelCount channels : {ChannelCount::kOne, ChannelCount::kMany}) {
      MeasuredEffect effect;
      effect.topology = file.contexts.back().topology;
      effect.collectives = 1;
      effect.config = {Algorithm::kRing, Protocol::kSimple, 0};
      effect.channel_count = channels;
      effect.log_ratio = channels == ChannelCount::kOne ? -0.3 : 0.1;
      effect.error = 0.01;
      effect.steps = 5;
      file.effects.push_back(effect);
    }
  }
  return file;
}

TEST_F(PolicyExport, EffectsOnStepsAreLearntBesideTimes) {
  ASSERT_TRUE(WriteMeasurementFile(Path("e.measurements"), SomeEffects()));
  TrainSettings settings = Short("p.dcpolicy");
  settings.measurements.push_back(Path("e.measurements"));
  settings.hold_out.topologies.push_back("f1");
  const Status status = Train(settings);
  ASSERT_TRUE(status) << status.error().message;
  const auto policy = ReadPolicyFile(Path("p.dcpolicy"));
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ((*policy)->tensors.effect.count, 4) << "f1 is held out";
  EXPECT_NE((*policy)->provenance.find("effects on steps: 4 on 2 fabrics"), std::string::npos);
}

TEST_F(PolicyExport, EffectsAloneAreLearntOnTopOfAPolicyWhichOtherwiseStays) {
  ASSERT_TRUE(WriteMeasurementFile(Path("e.measurements"), SomeEffects()));
  TrainSettings settings;
  settings.measurements = {Path("e.measurements")};
  settings.output = Path("p.dcpolicy");
  const Status alone = Train(settings);
  ASSERT_FALSE(alone);
  EXPECT_NE(alone.error().hint.find("--from"), std::string::npos);
  ASSERT_TRUE(Train(Short("base.dcpolicy")));
  settings.from = Path("base.dcpolicy");
  ASSERT_TRUE(Train(settings));
  const auto base = ReadPolicyFile(Path("base.dcpolicy")), fitted = ReadPolicyFile(Path("p.dcpolicy"));
  ASSERT_TRUE(base && fitted);
  EXPECT_EQ((*fitted)->tensors.effect.count, 6);
  // All tensors before the effects must be those of the base policy.
  EXPECT_EQ(std::memcmp(&(*base)->tensors, &(*fitted)->tensors, offsetof(PolicyTensors, effect_weights_1)),
            0);
  // A later training on a sweep must not change the effects.
  settings.from = Path("p.dcpolicy");
  settings.measurements = {Path("a.measurements")};
  settings.output = Path("later.dcpolicy");
  ASSERT_TRUE(Train(settings));
  const auto later = ReadPolicyFile(Path("later.dcpolicy"));
  ASSERT_TRUE(later);
  EXPECT_EQ(std::memcmp(&(*later)->tensors.effect_weights_1, &(*fitted)->tensors.effect_weights_1,
                        sizeof(PolicyTensors) - offsetof(PolicyTensors, effect_weights_1)),
            0);
}

TEST_F(PolicyExport, WhatAPolicyHasSeenIsNeverHeldOut) {
  TrainSettings settings = Short("base.dcpolicy");
  settings.hold_out = {};
  ASSERT_TRUE(Train(settings));
  settings = Short("p.dcpolicy");
  settings.from = Path("base.dcpolicy");
  const Status seen = Train(settings);
  ASSERT_FALSE(seen);
  EXPECT_NE(seen.error().message.find("a.measurements: the policy was trained on"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(Path("p.dcpolicy")));
  // The policy has not seen another sweep of the same topologies, nor what its own training held out.
  ASSERT_TRUE(WriteMeasurementFile(Path("b.measurements"), test::MakeSweep({.seed = 2, .topologies = 2})));
  settings.measurements = {Path("b.measurements")};
  EXPECT_TRUE(Train(settings));
  ASSERT_TRUE(Train(Short("base.dcpolicy")));
  settings.measurements = {Path("a.measurements")};
  EXPECT_TRUE(Train(settings));
}

TEST_F(PolicyExport, PoliciesOfDifferentTrainingsAreNotJudgedTogether) {
  ASSERT_TRUE(Train(Short("a.dcpolicy")));
  TrainSettings other = Short("b.dcpolicy");
  other.seed = 2;
  ASSERT_TRUE(Train(other));
  EvalSettings both{.policies = {Path("a.dcpolicy"), Path("b.dcpolicy")},
                    .measurements = {Path("a.measurements")},
                    .json = Path("e.json")};
  EXPECT_TRUE(Evaluate(both)) << "they differ in the seed alone";
  other.hold_out.sizes = 4;
  ASSERT_TRUE(Train(other));
  const Status judged = Evaluate(both);
  ASSERT_FALSE(judged);
  EXPECT_NE(judged.error().message.find("b.dcpolicy were trained on other data"), std::string::npos);
}

TEST_F(PolicyExport, WhatTrainingReadIsNoNewSweep) {
  ASSERT_TRUE(Train(Short("p.dcpolicy")));
  ASSERT_TRUE(WriteMeasurementFile(Path("b.measurements"), test::MakeSweep({.seed = 2, .topologies = 2})));
  EvalSettings settings{.policies = {Path("p.dcpolicy")},
                        .measurements = {Path("b.measurements")},
                        .trained_on = {Path("a.measurements")},
                        .json = Path("e.json")};
  EXPECT_TRUE(Evaluate(settings));
  settings.measurements = {Path("a.measurements")};
  const Status judged = Evaluate(settings);
  ASSERT_FALSE(judged);
  EXPECT_NE(judged.error().message.find("a.measurements: the policy was trained on it"), std::string::npos);
}

TEST_F(PolicyExport, WrongInputsAreNamed) {
  TrainSettings settings = Short("p.dcpolicy");
  settings.measurements = {Path("none.measurements")};
  EXPECT_NE(Train(settings).error().message.find("none.measurements"), std::string::npos);
  settings = Short("p.dcpolicy");
  settings.hold_out.sizes = 1;
  EXPECT_EQ(Train(settings).error().kind, ErrorKind::kInvalidArgument) << "everything is held out";
  EXPECT_FALSE(Evaluate({.policies = {Path("none.dcpolicy")}, .measurements = {Path("a.measurements")}}));
  EXPECT_FALSE(Evaluate({.policies = {Path("none.dcpolicy")}}));
}

}  // namespace
}  // namespace dynamiccl::agents
