// SPDX-License-Identifier: Apache-2.0
// The list of generators, the choice of one by name, and the checks before it runs.
#include "traces/generators/framework_generator.h"

namespace dynamiccl {
namespace {

// The names of all generators, for messages.
std::string KnownFrameworks() {
  std::string names;
  for (const FrameworkGenerator* generator : AllFrameworkGenerators())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", generator->name());
  return names;
}

Result<const FrameworkGenerator*> Find(std::string_view name) {
  for (const FrameworkGenerator* generator : AllFrameworkGenerators()) {
    if (generator->name() == name) return generator;
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--framework: no generator for '{}'", name),
                  "one of: " + KnownFrameworks());
}

}  // namespace

Status FrameworkGenerator::RefuseTensorParallel(const GeneratorInput& input) const {
  if (input.world.tensor == 1) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--tensor-parallel {}: {} has no tensor parallelism",
                            input.world.tensor, name()),
                  "leave it at 1, or take --framework megatron");
}

Status FrameworkGenerator::RefuseHybridSharding(const GeneratorInput& input) const {
  if (!input.world.IsHybrid()) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--shard-group {}: {} has no hybrid sharding",
                            input.world.shard, name()),
                  "leave it out");
}

Status FrameworkGenerator::Check(const GeneratorInput& input) const {
  DYNAMICCL_CHECK_OK(RefuseTensorParallel(input));
  return RefuseHybridSharding(input);
}

std::span<const FrameworkGenerator* const> AllFrameworkGenerators() {
  static const FrameworkGenerator* const generators[] = {
      &DdpGenerator(),
      &ZeroRedundancyGenerator(),
      &DeepSpeedStage1Generator(),
      &DeepSpeedStage2Generator(),
      &DeepSpeedStage3Generator(),
      &Fsdp2Generator(),
      &MegatronGenerator(),
      &LlmcGenerator(),
      &ColossalAiGenerator(),
      &ZeroPaperGenerator(),
      &DynamicclZeroGenerator(),
  };
  return generators;
}

Result<GeneratedRun> GenerateRun(std::string_view framework, const ModelShape& model, const WorldShape& world,
                                 const SettingTexts& settings, int steps) {
  DYNAMICCL_TRY(const FrameworkGenerator* generator, Find(framework));
  DYNAMICCL_CHECK_OK(Check(world));
  DYNAMICCL_TRY(const SettingValues values, SettingValues::Parse(generator->settings(), settings, framework));
  const GeneratorInput input{model, world, values};
  DYNAMICCL_CHECK_OK(generator->Check(input));
  GeneratedRun run{std::string(framework), world, generator->Stage(input), {}, {}};
  OperationList before;
  generator->Construct(input, before);
  run.construction = before.Take();
  for (int step = 0; step < steps; ++step) {
    OperationList list;
    generator->Step(input, step, list);
    run.steps.push_back(list.Take());
  }
  return run;
}

}  // namespace dynamiccl
