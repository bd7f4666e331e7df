// SPDX-License-Identifier: Apache-2.0
// The job that advice is about: which framework trains which model on how many ranks, with which settings.
#pragma once

#include <cstdint>
#include <string>

#include "traces/generators/framework_generator.h"

namespace dynamiccl {

// The project's own trainer, whose schedule is known beyond its calls (trainer_program.h).
inline constexpr std::string_view kTrainer = "dynamiccl-zero";

struct AdvisedJob {
  std::string framework;  // a generator's name
  ModelShape model;
  WorldShape world;
  SettingTexts settings;  // of the generator

  bool IsTrainer() const { return framework == kTrainer; }
};

// The framework's settings with its defaults.
Result<SettingValues> SettingsOf(const AdvisedJob& job);
// The text of a setting, or the framework's default; empty: it has no such setting.
std::string SettingOf(const AdvisedJob& job, std::string_view name);

// The ZeRO stage that the framework runs with these settings, from 0 to 3; 0 where it refuses them or is not
// known.
int StageOf(const AdvisedJob& job);
// Passes of a step, by whichever name the framework's setting has; 1 where it has none.
Result<int64_t> MicroStepsOf(const AdvisedJob& job);

// The operations of one step, of the steady state.
Result<std::vector<WireOperation>> OperationsOf(const AdvisedJob& job);

}  // namespace dynamiccl
