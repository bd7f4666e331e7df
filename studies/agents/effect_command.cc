// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/effect_command.h"

#include <fmt/core.h>

#include "agents/train_command.h"

namespace dynamiccl::agents {

Status StudyEffectsCommand(const EffectSettings& settings) {
  DYNAMICCL_TRY(const std::vector<MeasurementFile> files, ReadMeasurements(settings.measurements));
  const std::vector<EffectSample> samples = EffectSamplesOf(files, {});
  if (samples.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "no effects on steps in the measurements"),
                    "make them with benchmarks/step_effects.py or `dynamiccl ab --effects`");
  fmt::print("{}", FormatEffectStudy(StudyEffects(files, settings.training, settings.seeds), samples));
  return {};
}

}  // namespace dynamiccl::agents
