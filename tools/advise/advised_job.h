// SPDX-License-Identifier: Apache-2.0
// The job that advice is about: which framework trains which model on how many ranks, with which settings.
#pragma once

#include <cstdint>
#include <string>

#include "traces/generators/framework_generator.h"

namespace dynamiccl {

// Name of the project's own ZeRO trainer. trainer_program.h knows when the trainer computes and waits, so a
// prediction for the trainer is better than one for another framework.
inline constexpr std::string_view kTrainer = "dynamiccl-zero";

// A training job in the form that the generators in traces/generators take. A generator lists the collectives
// that a framework would issue.
struct AdvisedJob {
  // Name of a generator in traces/generators.
  std::string framework;
  ModelShape model;
  WorldShape world;
  // Settings of the generator by name. A setting that is not listed has the framework's default.
  SettingTexts settings;

  bool IsTrainer() const { return framework == kTrainer; }
};

// Returns all settings, with the defaults filled in. It is an error if the framework or a setting is unknown.
Result<SettingValues> SettingsOf(const AdvisedJob& job);
// The text of a setting, or the framework's default. Empty when the framework has no such setting.
std::string SettingOf(const AdvisedJob& job, std::string_view name);

// The ZeRO stage, 0 to 3, that the framework runs with these settings. 0 also when the framework refuses the
// settings or is unknown.
int StageOf(const AdvisedJob& job);
// Number of micro-steps (forward and backward passes) in one step, as the framework's own setting gives it. 1
// for a framework without such a setting.
Result<int64_t> MicroStepsOf(const AdvisedJob& job);

// Returns the collectives of one training step, after the first steps, to which frameworks adapt.
Result<std::vector<WireOperation>> OperationsOf(const AdvisedJob& job);

}  // namespace dynamiccl
