// SPDX-License-Identifier: Apache-2.0
// Options of a training run from files: the trainer's own TOML, and DeepSpeed's JSON.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::zero {

// An option in the form of a command line, and the place in the file that it comes from.
struct FileOption {
  // The option with its dashes, for example "--bucket-bytes".
  std::string option;
  // The option's values; empty for a flag.
  std::vector<std::string> values;
  // For error messages: "run.toml: line 3, column 1".
  std::string origin;
};

// All options of a file, in the file's order.
struct FileOptions {
  std::vector<FileOption> options;
  // Settings of the file that have no effect here, one sentence each.
  std::vector<std::string> notes;
  // True if the file belongs to another program. Its options are then translations and not the user's own
  // words.
  bool translated = false;
};

// Reads the trainer's own TOML form. A key is an option's long name without dashes in front (`bucket-bytes`
// or `bucket_bytes`). Its value is a number, a text, a list of these, or a truth value for a flag. Tables
// serve as headings only. The error is kNotFound if the file cannot be read.
Result<FileOptions> ReadTomlSettings(const std::filesystem::path& path);

// Reads DeepSpeed's configuration (deepspeed.ai/docs/config-json). Keys that this trainer does not support
// are an error. `world` is the number of ranks. It is used to convert DeepSpeed's batch size of each GPU to
// the batch size of the run.
Result<FileOptions> ReadDeepSpeedSettings(const std::filesystem::path& path, int world);

}  // namespace dynamiccl::zero
