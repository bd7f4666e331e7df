// SPDX-License-Identifier: Apache-2.0
// A training example of what a config does to a training step: the inputs of the prediction, and the effect
// that an experiment measured.
#pragma once

#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "src/policy/effect_features.h"
#include "traces/format/measurement.h"

namespace dynamiccl::agents {

// One measured effect.
struct EffectSample {
  EffectInputs inputs{};
  // log2(step's time with the config / step's time with NCCL's choice), and the standard error of this
  // number.
  double octaves = 0;
  double error = 0;
  // Name of the fabric. Effects of one fabric are held out together.
  std::string topology;
  // Weight in the training loss, 1 on average.
  double weight = 1;
};

// Returns all effects on fabrics that `hold_out` does not name, in the order of the files. A sample's weight
// shrinks with its error, and with the number of effects on its fabric, as 1 / sqrt(number).
std::vector<EffectSample> EffectSamplesOf(const std::vector<MeasurementFile>& files, const HoldOut& hold_out);

// Returns the samples without the inputs that a job leaves unknown when it asks about a config: bytes, role,
// phase, memory and exposed share. A job asks about all of its large calls together (PredictedEffectOf in
// src/decision/guard/expected_effect.h). Networks that were trained only on samples with known inputs could
// not answer such a question.
std::vector<EffectSample> AsJobsAsk(std::vector<EffectSample> samples);

// Returns the subject of a measured effect on a fabric.
EffectSubject SubjectOf(const MeasuredEffect& effect, const Fabric& fabric);

}  // namespace dynamiccl::agents
