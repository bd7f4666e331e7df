// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-zero estimate`: prints the memory that a training run would need, as tables or JSON.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/estimate/memory_estimate.h"

namespace dynamiccl::zero {

// The command's options and their execution. main() owns it: Register() first, then Run() after parsing.
class EstimateCommand {
 public:
  void Register(CLI::App& app);
  // Returns the text for standard output, or the first error with a hint.
  Result<std::string> Run();

 private:
  // Adds the options that determine the sizes of the states, and those for the time to train.
  void RegisterStates(CLI::App& app);
  void RegisterTime(CLI::App& app);
  // Returns an error if options contradict each other or lack the model's shape.
  Status CheckWhatGoesTogether() const;
  bool Given(const char* option) const { return app_->count(option) > 0; }
  // Fills `settings_` from the options: shape, preset and configuration of the ZeRO paper. Explicit options
  // win over a preset.
  Status TakeShape();
  Status TakePreset();
  Status TakeTime();
  Status TakeConfig();

  CLI::App* app_ = nullptr;
  EstimateSettings settings_;
  TransformerShape shape_;
  std::string parameters_;
  std::string tokens_;
  double tflops_ = 0;
  std::string preset_;
  std::string config_;
  std::string checkpoints_ = "full";
  bool paper_ = false;
  bool untied_head_ = false;
  bool json_ = false;
};

}  // namespace dynamiccl::zero
