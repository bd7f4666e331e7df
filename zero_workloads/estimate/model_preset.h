// SPDX-License-Identifier: Apache-2.0
// Models by name: the models that the ZeRO paper trained with ZeRO (its Tables 5 to 10), and the sizes of
// GPT-2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::zero {

// A model and the way in which it was run.
struct ModelPreset {
  // Name of the preset, for example "100B" or "gpt2-xl".
  std::string name;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  // Number of sequences that one data-parallel rank computes at a time.
  int64_t batch = 1;
  int tensor_parallel = 1;
  // Number of data-parallel ranks. 0 means that the paper did not run the model.
  int64_t ranks = 0;
  // Number of tokens in a sequence. The paper and GPT-2 use the same number.
  int64_t sequence = 1024;
};

// All presets. Where the paper ran a model in several ways, the preset is the first of them.
const std::vector<ModelPreset>& ModelPresets();
// Returns the preset of this name. If the name is unknown, the error lists all names.
Result<ModelPreset> FindModelPreset(const std::string& name);
// All names for messages: "1.5B, 8B, ..., gpt2, ...".
std::string ModelPresetNames();

}  // namespace dynamiccl::zero
