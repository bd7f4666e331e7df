// SPDX-License-Identifier: Apache-2.0
// The job that advice is about: which framework trains which model on how many ranks, with which settings.
#pragma once

#include <cstdint>
#include <string>

#include "traces/generators/framework_generator.h"

namespace dynamiccl {

// The project's own trainer. Its schedule is known beyond its calls (trainer_program.h), so its prediction is
// better than that of other frameworks.
inline constexpr std::string_view kTrainer = "dynamiccl-zero";

// A job as the generators of traces/generators describe it.
struct AdvisedJob {
  // Name of a generator in traces/generators.
  std::string framework;
  ModelShape model;
  WorldShape world;
  // Settings of the generator by name; a setting that is absent has the framework's default.
  SettingTexts settings;

  bool IsTrainer() const { return framework == kTrainer; }
};

// The settings with defaults filled in. An error for an unknown framework or setting.
Result<SettingValues> SettingsOf(const AdvisedJob& job);
// The text of a setting, or the framework's default. Empty when the framework has no such setting.
std::string SettingOf(const AdvisedJob& job, std::string_view name);

// The ZeRO stage that the framework runs with these settings, from 0 to 3; 0 where it refuses them or is not
// known.
int StageOf(const AdvisedJob& job);
// Micro-steps (forward and backward passes) in one step, from whichever setting the framework has for them; 1
// where it has none.
Result<int64_t> MicroStepsOf(const AdvisedJob& job);

// The operations of one step in the steady state.
Result<std::vector<WireOperation>> OperationsOf(const AdvisedJob& job);

}  // namespace dynamiccl
