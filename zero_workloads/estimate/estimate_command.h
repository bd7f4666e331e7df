// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-zero estimate`: its options, and the tables and JSON that it prints.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/estimate/memory_estimate.h"

namespace dynamiccl::zero {

class EstimateCommand {
 public:
  void Register(CLI::App& app);
  // What is to be printed on standard output.
  Result<std::string> Run();

 private:
  Status CheckWhatGoesTogether() const;
  bool Given(const char* option) const { return app_->count(option) > 0; }
  Status TakeShape();
  Status TakePreset();
  Status TakeConfig();

  CLI::App* app_ = nullptr;
  EstimateSettings settings_;
  TransformerShape shape_;
  std::string parameters_;
  std::string preset_;
  std::string config_;
  std::string checkpoints_ = "full";
  bool paper_ = false;
  bool untied_head_ = false;
  bool json_ = false;
};

}  // namespace dynamiccl::zero
