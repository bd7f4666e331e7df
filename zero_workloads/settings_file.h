// SPDX-License-Identifier: Apache-2.0
// Options of a training run from files: the trainer's own TOML, and DeepSpeed's JSON.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::zero {

// An option as a command line would give it, and where it comes from.
struct FileOption {
  std::string option;               // "--bucket-bytes"
  std::vector<std::string> values;  // none for a flag
  std::string origin;               // "run.toml: line 3, column 1", for errors
};

struct FileOptions {
  std::vector<FileOption> options;
  // What the file asks for that makes no difference here, a sentence each.
  std::vector<std::string> notes;
};

// A key is an option's long name without its dashes (`bucket-bytes` or `bucket_bytes`), its value a number, a
// text, a truth value for a flag, or a list. Tables are headings only.
Result<FileOptions> ReadTomlSettings(const std::filesystem::path& path);

// DeepSpeed's configuration (deepspeed.ai/docs/config-json), as far as this trainer does what it asks for;
// every other key is an error. `world`: ranks of the run, for batch sizes a GPU.
Result<FileOptions> ReadDeepSpeedSettings(const std::filesystem::path& path, int world);

}  // namespace dynamiccl::zero
