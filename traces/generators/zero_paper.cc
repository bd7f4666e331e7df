// SPDX-License-Identifier: Apache-2.0
// ZeRO as its paper describes it (Rajbhandari et al., SC20, sections 5 and 7). The flat model is divided into
// one partition for each rank. A step is
// - P_os (stage 1): ReduceScatter of all gradients; AllGather of all parameters
// - P_os+g (stage 2): Reduce of each partition's gradients to its owner, in fused buffers of a constant size;
//   AllGather of all parameters
// - P_os+g+p (stage 3): Broadcast of each partition by its owner, in the forward pass and again in the
//   backward pass; Reduce as in stage 2
#include <algorithm>
#include <array>

#include "traces/generators/framework_generator.h"

namespace dynamiccl {
namespace {

constexpr std::array kZeroPaperSettings = {
    GeneratorSetting{"dtype", SettingKind::kDataType, "float16", "type of parameters and gradients"},
    GeneratorSetting{"stage", SettingKind::kChoice, "3", "1: P_os, 2: P_os+g, 3: P_os+g+p", 1, "1,2,3"},
    GeneratorSetting{"buffer_elements", SettingKind::kInteger, "0",
                     "C_B of gradients; 0: a whole partition at once", 0},
};

class ZeroPaper : public FrameworkGenerator {
 public:
  std::string_view name() const override { return "zero-paper"; }
  std::string_view sentence() const override { return "ZeRO to the letter of its paper"; }
  std::string_view source() const override { return "arXiv 1910.02054, sections 5 and 7"; }
  std::span<const GeneratorSetting> settings() const override { return kZeroPaperSettings; }
  ZeroStage Stage(const GeneratorInput& input) const override {
    return static_cast<ZeroStage>(input.settings.Choice("stage").front() - '0');
  }
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;
};

// Reduces one partition in buffers of constant size.
void ReduceToOwner(const GeneratorInput& input, int64_t elements, int owner, OperationList& list) {
  const int64_t wanted = input.settings.Integer("buffer_elements");
  const int64_t buffer = wanted == 0 ? elements : wanted;
  for (int64_t at = 0; at < elements; at += buffer) {
    list.Reduce(std::min(buffer, elements - at), input.settings.Type("dtype"), ReduceOp::kSum, owner,
                Role::kGradientReduce);
  }
}

void ZeroPaper::Step(const GeneratorInput& input, int, OperationList& list) const {
  const DataType type = input.settings.Type("dtype");
  const std::string& stage = input.settings.Choice("stage");
  const int ranks = input.world.data;
  const int64_t padded = RoundUp(input.model.Elements(), ranks), part = padded / ranks;
  list.SetPhase(Phase::kForward);
  for (int owner = 0; stage == "3" && owner < ranks; ++owner)
    list.Broadcast(part, type, owner, Role::kParameterGather);
  list.SetPhase(Phase::kBackward);
  if (stage == "1") list.ReduceScatter(padded, type, ReduceOp::kSum, Role::kGradientReduce);
  for (int owner = ranks - 1; stage != "1" && owner >= 0; --owner) {
    if (stage == "3") list.Broadcast(part, type, owner, Role::kParameterGather);
    ReduceToOwner(input, part, owner, list);
  }
  list.SetPhase(Phase::kOptimizer);
  if (stage != "3") list.AllGather(padded, type, Role::kPostStepGather);
}

}  // namespace

const FrameworkGenerator& ZeroPaperGenerator() {
  static const ZeroPaper generator;
  return generator;
}

}  // namespace dynamiccl
