// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/effects/effect_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace dynamiccl::agents {
namespace {

using testing::HasSubstr;

MeasuredEffect EffectOn(const std::string& fabric, ChannelCount channels, double log_ratio) {
  MeasuredEffect effect;
  effect.topology = fabric;
  effect.collectives = 0b1100;
  effect.slowness = 2;
  effect.share = 0.8;
  effect.config = {Algorithm::kRing, Protocol::kSimple, 0};
  effect.channel_count = channels;
  effect.log_ratio = log_ratio;
  effect.error = 0.01;
  effect.steps = 20;
  return effect;
}

// Four fabrics on which one channel makes steps 30 % shorter and many channels make them 10 % longer, as
// logarithms.
MeasurementFile FourLikeFabrics() {
  MeasurementFile file;
  for (const char* name : {"a", "b", "c", "d"}) {
    file.contexts.push_back({name, {}});
    file.contexts.back().model.fabric = {2, 2, 8, {}, {}};
    file.effects.push_back(EffectOn(name, ChannelCount::kOne, -0.3));
    file.effects.push_back(EffectOn(name, ChannelCount::kMany, 0.1));
  }
  return file;
}

TEST(EffectStudy, JudgesChoicesByWhatTheJobsMeasured) {
  EffectTrainingSettings settings;
  settings.iterations = 300;
  const EffectStudy study = StudyEffects({FourLikeFabrics()}, settings, 1);
  EXPECT_EQ(study.effects, 8u);
  EXPECT_EQ(study.fabrics, 4u);
  EXPECT_EQ(study.jobs, 4u);
  EXPECT_NEAR(study.best, -0.3, 1e-12);
  ASSERT_EQ(study.predictors.size(), 4u);
  for (const size_t learner : {0, 1, 2}) {
    const JudgedPredictor& judged = study.predictors[learner];
    EXPECT_NEAR(judged.chosen, -0.3, 1e-12) << judged.name;
    EXPECT_EQ(judged.changed, 4u) << judged.name;
    EXPECT_EQ(judged.worse, 0u) << judged.name;
    EXPECT_LT(judged.errors.predicted, judged.errors.nothing) << judged.name;
  }
  const JudgedPredictor& nothing = study.predictors[3];
  EXPECT_EQ(nothing.changed, 0u);
  EXPECT_EQ(nothing.chosen, 0);
  EXPECT_DOUBLE_EQ(nothing.errors.predicted, nothing.errors.nothing);
}

TEST(EffectStudy, ShowsThatOnlyChannelsAreWorthSomethingHere) {
  EffectTrainingSettings settings;
  settings.iterations = 300;
  const EffectStudy study = StudyEffects({FourLikeFabrics()}, settings, 1);
  for (const JudgedPredictor& without : study.without) {
    if (without.name == "channels")
      EXPECT_GT(without.errors.predicted, study.predictors[0].errors.nothing / 2);
    else
      EXPECT_LT(without.errors.predicted, study.predictors[0].errors.nothing / 2) << without.name;
  }
  const auto samples = EffectSamplesOf({FourLikeFabrics()}, {});
  const std::string text = FormatEffectStudy(study, samples);
  EXPECT_THAT(text, HasSubstr("8 effects of 4 jobs on 4 fabrics"));
  EXPECT_THAT(text, HasSubstr("| role | never known |"));
}

}  // namespace
}  // namespace dynamiccl::agents
