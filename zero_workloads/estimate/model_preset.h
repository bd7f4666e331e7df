// SPDX-License-Identifier: Apache-2.0
// Models by name: those that the ZeRO paper ran with ZeRO (its Tables 5 to 10), and GPT-2's sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::zero {

struct ModelPreset {
  std::string name;  // "100B", "gpt2-xl"
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t batch = 1;  // sequences of a data-parallel rank
  int tensor_parallel = 1;
  int64_t ranks = 0;        // data-parallel; 0: the model is known without any
  int64_t sequence = 1024;  // the paper's and GPT-2's
};

// Where the paper ran a model in several ways, its first.
const std::vector<ModelPreset>& ModelPresets();
// An unknown name is an error with all names.
Result<ModelPreset> FindModelPreset(const std::string& name);
// "1.5B, 8B, ..., gpt2, ...".
std::string ModelPresetNames();

}  // namespace dynamiccl::zero
