// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-zero checkpoint`: lists and verifies the checkpoints of a folder, and exports and imports
// weights as safetensors files.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/base/status.h"

namespace dynamiccl::zero {

// The command's options and their execution. main() owns it: Register() first, then Run() after parsing.
class CheckpointCommand {
 public:
  // Adds the subcommands and their options to `app`.
  void Register(CLI::App& app);
  // Executes the parsed subcommand and prints to standard output. Returns the first error, for example a
  // damaged checkpoint.
  Status Run();

 private:
  Status List() const;
  Status Verify() const;
  Status Export() const;
  Status Import() const;
  // Returns the steps that the command works on: the value of --step, or all complete checkpoints. Without
  // any checkpoint the error is kNotFound.
  Result<std::vector<int64_t>> Steps() const;

  CLI::App* list_ = nullptr;
  CLI::App* verify_ = nullptr;
  CLI::App* export_ = nullptr;
  std::string folder_, file_;
  std::string dtype_ = "fp32";
  // Value of the option --step; -1 if the option was not given.
  int64_t step_ = -1;
  bool optimizer_state_ = false;
};

}  // namespace dynamiccl::zero
