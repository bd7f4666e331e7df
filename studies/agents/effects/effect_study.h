// SPDX-License-Identifier: Apache-2.0
// Judges predictions of the effects of configs on training steps, on fabrics that training left out. Compares
// them with simpler ways, and shows what each input is worth.
#pragma once

#include <string>
#include <vector>

#include "agents/config/effect_training.h"

namespace dynamiccl::agents {

// One way to predict effects, judged on left-out fabrics.
struct JudgedPredictor {
  std::string name;
  EffectErrors errors;
  // Mean of the logarithms of a job's step time over its step time with NCCL's choice. The job uses the
  // config with the least predicted time, and NCCL's choice if no gain of kLeastGain is predicted.
  double chosen = 0;
  size_t changed = 0;  // jobs that do not use NCCL's choice
  size_t worse = 0;    // jobs whose config makes steps longer by more than 2 % and two standard errors
};

// A predicted gain below this value changes no choice, in octaves (5 %, as for a search that believes other
// jobs).
inline constexpr double kLeastGain = 0.05 / 0.6931471805599453;

// The result of the study.
struct EffectStudy {
  size_t effects = 0;
  size_t fabrics = 0;
  size_t jobs = 0;
  // Mean of the logarithms of the step times with the config that each job measured as the fastest. It is too
  // good, because chance helps to make one of several measured configs the fastest.
  double best = 0;
  // The networks, the site store's regression, a mean for each config, and a prediction of no effect.
  std::vector<JudgedPredictor> predictors;
  // The networks without one group of inputs each, in the order of the groups.
  std::vector<JudgedPredictor> without;
};

// A group of inputs that belong together, such as those of the role. InputGroups() returns all groups.
struct InputGroup {
  std::string name;
  std::vector<EffectFeature> features;
};
const std::vector<InputGroup>& InputGroups();

// True if the group's inputs are 0 in all samples, so that nothing can be said about their worth.
bool IsNeverKnown(const InputGroup& group, const std::vector<EffectSample>& samples);

// Runs the study on all effects of `files`, with one training for each fabric and each group of inputs. With
// several seeds the networks' predictions are the means over seeds.
EffectStudy StudyEffects(const std::vector<MeasurementFile>& files, const EffectTrainingSettings& settings,
                         int seeds);

// Tables in Markdown.
std::string FormatEffectStudy(const EffectStudy& study, const std::vector<EffectSample>& samples);

}  // namespace dynamiccl::agents
