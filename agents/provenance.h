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
  // The libraries that did the arithmetic, with their versions.
  std::string libraries{};
  // Training steps of each agent. 0 for the further training of a policy, in which the number of steps is
  // fixed.
  int structure_iterations = 0, config_iterations = 0;
  // Each line names what was learnt from ("calls", "times" or "effects") and its checksum (learnt_data.h).
  std::vector<std::string> learnt{};
  // Lines "N key: value" about the trainings before this one. N is 1 for the training of the policy with
  // which this training began, 2 for the training before that one, and so on.
  std::vector<std::string> earlier{};
};

// Reads the file and returns its SHA-256. Returns kNotFound, with a hint, if the file cannot be read.
Result<InputFile> HashInput(const std::string& kind, const std::string& path);
// The text that the policy file stores. Inputs appear with their file names only. If the text would be too
// long for a policy file, the earliest trainings are left out.
std::string FormatProvenance(const Provenance& provenance);
// The inverse of FormatProvenance. Unknown lines are ignored, and so are inputs of kind "policy".
Provenance ParseProvenance(const std::string& text);
// Returns the value of `earlier` for a training that goes on from a policy with this text.
std::vector<std::string> EarlierLines(const std::string& text_of_base);
// Returns the provenance with this text, and that of each earlier training, newest first.
std::vector<Provenance> AllTrainings(const std::string& text);
// XXH3 over the hashes of the inputs: equal training data give equal numbers.
uint64_t TrainingDataId(const Provenance& provenance);

}  // namespace dynamiccl::agents
