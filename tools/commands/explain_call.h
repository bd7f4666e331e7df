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
  std::string measurements;  // file from which the fabric is taken; empty: a fabric is assumed
  // The name of a topology in the file `measurements` or, without such a file, a topology of hostccl. Empty:
  // the first topology of the file, or the assumed fabric.
  std::string topology;
  std::string collective = "all_reduce";
  std::string bytes = "4M";
  // 0: not given.
  int n_ranks = 0;
  int n_nodes = 0;
  bool all = false;
  bool json = false;
};

// Registers all options except --measurements and --json, which the command also uses for other purposes.
void RegisterExplainCall(CLI::App& app, ExplainCallOptions& options);
// True if the user gave any of these options.
bool AsksAboutCall(const CLI::App& app);

Result<int> ExplainCall(const Policy& policy, const ExplainCallOptions& options);

}  // namespace dynamiccl
