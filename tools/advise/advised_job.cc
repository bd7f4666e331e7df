// SPDX-License-Identifier: Apache-2.0
// Reads a job's settings and generates the calls of its training step.
#include "tools/advise/advised_job.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// Index of the generated step that is used, counted from 0. Frameworks adapt to their first two steps; from
// the third step on all steps are alike.
constexpr int kSteadyStep = 2;

const FrameworkGenerator* Find(std::string_view name) {
  const auto all = AllFrameworkGenerators();
  const auto found =
      std::ranges::find_if(all, [&](const FrameworkGenerator* one) { return one->name() == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace

Result<SettingValues> SettingsOf(const AdvisedJob& job) {
  const FrameworkGenerator* const generator = Find(job.framework);
  if (generator == nullptr)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "no framework '{}' is known", job.framework),
                    "`dynamiccl trace generate --help` lists them");
  return SettingValues::Parse(generator->settings(), job.settings, job.framework);
}

std::string SettingOf(const AdvisedJob& job, std::string_view name) {
  if (const auto set = job.settings.find(name); set != job.settings.end()) return set->second;
  const FrameworkGenerator* const generator = Find(job.framework);
  if (generator == nullptr) return {};
  for (const GeneratorSetting& row : generator->settings())
    if (row.name == name) return std::string(row.standard);
  return {};
}

int StageOf(const AdvisedJob& job) {
  const FrameworkGenerator* const generator = Find(job.framework);
  const auto settings = SettingsOf(job);
  if (generator == nullptr || !settings) return 0;
  const GeneratorInput input{job.model, job.world, *settings};
  const ZeroStage stage = generator->Check(input) ? generator->Stage(input) : ZeroStage::kUnknown;
  return stage == ZeroStage::kUnknown ? 0 : static_cast<int>(stage);
}

Result<int64_t> MicroStepsOf(const AdvisedJob& job) {
  DYNAMICCL_TRY(const SettingValues settings, SettingsOf(job));
  for (const char* const name : {"micro_steps", "accumulation_steps"})
    if (settings.Has(name)) return settings.Integer(name);
  return 1;
}

Result<std::vector<WireOperation>> OperationsOf(const AdvisedJob& job) {
  DYNAMICCL_TRY(GeneratedRun run,
                GenerateRun(job.framework, job.model, job.world, job.settings, kSteadyStep + 1));
  return std::move(run.steps.back());
}

}  // namespace dynamiccl
