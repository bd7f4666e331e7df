// SPDX-License-Identifier: Apache-2.0
// ColossalAI's low-level ZeRO. Every parameter is padded to a multiple of the number of ranks. A step is
// - AllReduce (stage 1) or ReduceScatter (stage 2) for each gradient bucket
// - AllReduce of the overflow flag (float16 only), AllReduce of the norm
// - AllGather for each parameter
#include <algorithm>
#include <array>

#include "traces/generators/framework_generator.h"

namespace dynamiccl {
namespace {

constexpr std::array kColossalaiSettings = {
    GeneratorSetting{"dtype", SettingKind::kDataType, "bfloat16", "type of the model"},
    GeneratorSetting{"communication_dtype", SettingKind::kDataType, "", "of the reduction; empty: dtype"},
    GeneratorSetting{"stage", SettingKind::kChoice, "1", "2: partition_grad", 1, "1,2"},
    GeneratorSetting{"reduce_bucket_size", SettingKind::kInteger, "1048576", "elements of a bucket"},
    GeneratorSetting{"overlap_communication", SettingKind::kFlag, "false",
                     "reduce from gradient hooks, in the reverse order (stage 2 always does)"},
    GeneratorSetting{"accumulation_steps", SettingKind::kInteger, "1",
                     "micro-steps; stage 1 reduces in the last one (no_sync), stage 2 in each"},
};

class ColossalAi : public FrameworkGenerator {
 public:
  std::string_view name() const override { return "colossalai"; }
  std::string_view sentence() const override { return "ColossalAI's low-level ZeRO, stage 1 or 2"; }
  std::string_view source() const override {
    return "ColossalAI 023c13e: colossalai/zero/low_level/low_level_optim.py, bookkeeping/bucket_store.py";
  }
  std::span<const GeneratorSetting> settings() const override { return kColossalaiSettings; }
  ZeroStage Stage(const GeneratorInput& input) const override {
    return input.settings.Choice("stage") == "1" ? ZeroStage::kStage1 : ZeroStage::kStage2;
  }
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;
};

// Sends a gradient bucket.
void Send(const GeneratorInput& input, int64_t elements, OperationList& list) {
  const DataType type = input.settings.Type("communication_dtype");
  if (input.settings.Choice("stage") == "1")
    list.AllReduce(elements, type, ReduceOp::kSum, Role::kGradientReduce);
  else
    list.ReduceScatter(elements, type, ReduceOp::kSum, Role::kGradientReduce);
}

// A bucket is sent before the parameter that would exceed its size is added. Like the framework, this counts
// parameters in the bucket with padding and the new parameter without.
void ReduceGradients(const GeneratorInput& input, OperationList& list) {
  const SettingValues& settings = input.settings;
  std::vector<int64_t> sizes;
  for (const ParameterShape& parameter : input.model.parameters) sizes.push_back(parameter.Elements());
  if (settings.Choice("stage") == "2" || settings.Flag("overlap_communication"))
    std::reverse(sizes.begin(), sizes.end());
  int64_t in_bucket = 0;
  for (const int64_t elements : sizes) {
    if (in_bucket + elements > settings.Integer("reduce_bucket_size")) {
      Send(input, in_bucket, list);
      in_bucket = 0;
    }
    in_bucket += RoundUp(elements, input.world.data);
  }
  Send(input, in_bucket, list);
}

void ColossalAi::Step(const GeneratorInput& input, int, OperationList& list) const {
  const SettingValues& settings = input.settings;
  const DataType type = settings.Type("dtype");
  list.SetPhase(Phase::kBackward);
  const int64_t reductions = settings.Choice("stage") == "1" ? 1 : settings.Integer("accumulation_steps");
  for (int64_t i = 0; i < reductions; ++i) ReduceGradients(input, list);
  list.SetPhase(Phase::kOptimizer);
  if (type == DataType::kFloat16) list.AllReduce(1, DataType::kFloat32, ReduceOp::kMax, Role::kScalar);
  list.AllReduce(1, DataType::kFloat32, ReduceOp::kSum, Role::kScalar);
  for (const ParameterShape& parameter : input.model.parameters)
    list.AllGather(RoundUp(parameter.Elements(), input.world.data), type, Role::kPostStepGather);
}

}  // namespace

const FrameworkGenerator& ColossalAiGenerator() {
  static const ColossalAi generator;
  return generator;
}

}  // namespace dynamiccl
