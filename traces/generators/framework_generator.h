// SPDX-License-Identifier: Apache-2.0
// The calls that public training frameworks issue, as pure functions: one interface, and one file for each
// framework. docs/generators.md describes how to add one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "traces/generators/model_shape.h"
#include "traces/generators/operation_list.h"
#include "traces/generators/setting_values.h"
#include "traces/generators/world_shape.h"

namespace dynamiccl {

// The input of a generator. Settings are complete and valid.
struct GeneratorInput {
  const ModelShape& model;
  const WorldShape& world;
  const SettingValues& settings;
};

// One framework. Generators have no clock, randomness or state: the same input gives the same operations, and
// every rank issues them. Any thread may use them.
class FrameworkGenerator {
 public:
  virtual ~FrameworkGenerator() = default;
  // The name as `dynamiccl trace generate --framework` spells it: "fsdp2".
  virtual std::string_view name() const = 0;
  // Description of the framework in one line, for the help.
  virtual std::string_view sentence() const = 0;
  // The framework's source file and release whose behaviour this generator reproduces.
  virtual std::string_view source() const = 0;
  // The settings that change the framework's calls. Settings that change no call are not listed.
  virtual std::span<const GeneratorSetting> settings() const = 0;
  // The stage with which the run's trace is labelled.
  virtual ZeroStage Stage(const GeneratorInput& input) const = 0;
  // Returns an error for combinations that the framework does not support and that the table of settings
  // cannot express. A generator without its own Check refuses tensor parallelism and hybrid sharding.
  virtual Status Check(const GeneratorInput& input) const;
  // Adds the calls before the first step.
  virtual void Construct(const GeneratorInput&, OperationList&) const {}
  // Adds the calls of step `step`, from 0. The first steps may differ from later ones where a framework
  // adapts to what it saw.
  virtual void Step(const GeneratorInput& input, int step, OperationList& list) const = 0;

 protected:
  Status RefuseTensorParallel(const GeneratorInput& input) const;
  Status RefuseHybridSharding(const GeneratorInput& input) const;
};

// The operations of a whole job, equal on all ranks.
struct GeneratedRun {
  std::string framework;
  WorldShape world;
  ZeroStage stage = ZeroStage::kUnknown;
  std::vector<WireOperation> construction;
  std::vector<std::vector<WireOperation>> steps;
};

// All generators.
std::span<const FrameworkGenerator* const> AllFrameworkGenerators();

// Generates the construction and `steps` steps. Errors name the option and say what to do.
Result<GeneratedRun> GenerateRun(std::string_view framework, const ModelShape& model, const WorldShape& world,
                                 const SettingTexts& settings, int steps);

// The generators, each in a file of its own.
const FrameworkGenerator& DdpGenerator();
const FrameworkGenerator& ZeroRedundancyGenerator();
const FrameworkGenerator& DeepSpeedStage1Generator();
const FrameworkGenerator& DeepSpeedStage2Generator();
const FrameworkGenerator& DeepSpeedStage3Generator();
const FrameworkGenerator& Fsdp2Generator();
const FrameworkGenerator& MegatronGenerator();
const FrameworkGenerator& LlmcGenerator();
const FrameworkGenerator& ColossalAiGenerator();
const FrameworkGenerator& ZeroPaperGenerator();
const FrameworkGenerator& DynamicclZeroGenerator();

}  // namespace dynamiccl
