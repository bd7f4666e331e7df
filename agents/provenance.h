// SPDX-License-Identifier: Apache-2.0
// The origin of a policy file as "key: value" lines, which the file stores. Evaluations read these lines to
// find out what training saw.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

// A file that training read.
struct InputFile {
  // "trace", "measurements" or "policy".
  std::string kind;
  std::string path;
  std::string sha256;
};

// The origin of one policy.
struct Provenance {
  // The program that made the policy.
  std::string program;
  uint64_t seed = 1;
  HoldOut hold_out;
  std::vector<InputFile> inputs;
  // The reports of the training, one line each.
  std::vector<std::string> notes;
};

// Reads the file and returns its SHA-256. Returns kNotFound, with a hint, if the file cannot be read.
Result<InputFile> HashInput(const std::string& kind, const std::string& path);
// The text that the policy file stores. Inputs appear with their file names only.
std::string FormatProvenance(const Provenance& provenance);
// The inverse of FormatProvenance. Unknown lines are ignored, and so are inputs of kind "policy".
Provenance ParseProvenance(const std::string& text);
// XXH3 over the hashes of the inputs: equal training data give equal numbers.
uint64_t TrainingDataId(const Provenance& provenance);

}  // namespace dynamiccl::agents
