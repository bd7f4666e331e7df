// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-zero checkpoint`: what is in a folder of checkpoints, whether it is intact, and weights out of
// it and into it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/base/status.h"

namespace dynamiccl::zero {

class CheckpointCommand {
 public:
  void Register(CLI::App& app);
  // Prints to standard output.
  Status Run();

 private:
  Status List() const;
  Status Verify() const;
  Status Export() const;
  Status Import() const;
  // The steps that the command is about: --step, or all.
  Result<std::vector<int64_t>> Steps() const;

  CLI::App* list_ = nullptr;
  CLI::App* verify_ = nullptr;
  CLI::App* export_ = nullptr;
  std::string folder_, file_;
  std::string dtype_ = "fp32";
  int64_t step_ = -1;
  bool optimizer_state_ = false;
};

}  // namespace dynamiccl::zero
