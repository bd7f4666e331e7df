// SPDX-License-Identifier: Apache-2.0
// What a policy says of its own making: "key: value" lines, read back by evaluations to know what training
// saw.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

struct InputFile {
  std::string kind;  // "trace", "measurements" or "policy"
  std::string path;
  std::string sha256;
};

struct Provenance {
  std::string program;
  uint64_t seed = 1;
  HoldOut hold_out;
  std::vector<InputFile> inputs;
  std::vector<std::string> notes;  // what training reported
};

Result<InputFile> HashInput(const std::string& kind, const std::string& path);
std::string FormatProvenance(const Provenance& provenance);
// Lines that it does not know are left out.
Provenance ParseProvenance(const std::string& text);
// XXH3 over the hashes of the inputs.
uint64_t TrainingDataId(const Provenance& provenance);

}  // namespace dynamiccl::agents
