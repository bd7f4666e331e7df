// SPDX-License-Identifier: Apache-2.0
// The part of `dynamiccl inspect` about one call: why it gets the configuration that it gets.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl {

struct ExplainCallOptions {
  std::string rules;
  std::string measurements;  // for the fabric; empty: one is assumed
  std::string topology;
  std::string collective = "all_reduce";
  std::string bytes = "4M";
  int n_ranks = 16;
  int n_nodes = 2;
  bool all = false;
  bool json = false;
};

// All but --measurements and --json, which the command has for other ends too.
void RegisterExplainCall(CLI::App& app, ExplainCallOptions& options);
// Whether any of them was given.
bool AsksAboutCall(const CLI::App& app);

Result<int> ExplainCall(const Policy& policy, const ExplainCallOptions& options);

}  // namespace dynamiccl
