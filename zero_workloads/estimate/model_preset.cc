// SPDX-License-Identifier: Apache-2.0
// The models of the ZeRO paper come from PaperRuns(). Those of GPT-2 are listed here.
#include "zero_workloads/estimate/model_preset.h"

#include <algorithm>

#include "zero_workloads/estimate/paper_figures.h"

namespace dynamiccl::zero {
namespace {

std::vector<ModelPreset> MakePresets() {
  std::vector<ModelPreset> presets;
  for (const PaperRun& run : PaperRuns()) {
    const auto same = [&](const ModelPreset& known) { return known.name == run.model; };
    if (std::any_of(presets.begin(), presets.end(), same)) continue;
    presets.push_back(
        {run.model, run.layers, run.hidden, run.heads, run.batch, run.tensor_parallel, run.data_parallel()});
  }
  // Layers and widths from Radford et al., "Language Models are Unsupervised Multitask Learners", 2019. A
  // head has 64 numbers, as in the published weights.
  presets.push_back({"gpt2", 12, 768, 12});
  presets.push_back({"gpt2-medium", 24, 1024, 16});
  presets.push_back({"gpt2-large", 36, 1280, 20});
  presets.push_back({"gpt2-xl", 48, 1600, 25});
  return presets;
}

}  // namespace

const std::vector<ModelPreset>& ModelPresets() {
  static const std::vector<ModelPreset> presets = MakePresets();
  return presets;
}

std::string ModelPresetNames() {
  std::string names;
  for (const ModelPreset& preset : ModelPresets()) names += (names.empty() ? "" : ", ") + preset.name;
  return names;
}

Result<ModelPreset> FindModelPreset(const std::string& name) {
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name == name) return preset;
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--preset {}: there is no such model", name),
                  "one of " + ModelPresetNames());
}

}  // namespace dynamiccl::zero
