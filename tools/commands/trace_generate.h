// SPDX-License-Identifier: Apache-2.0
// `dynamiccl trace generate`: the calls of a public framework as a labelled trace, without running it.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "src/base/status.h"
#include "traces/generators/world_shape.h"

namespace dynamiccl {

// The options of `dynamiccl trace generate`.
struct TraceGenerateOptions {
  std::string framework;
  std::string model = "gpt";
  // A file that lists parameters, instead of `model`.
  std::string parameters;
  std::string settings;
  std::string output;
  WorldShape world;
  int steps = 3;
  // Number of ranks on a node; 0: all ranks are on one node.
  int ranks_per_node = 0;
  // True: print the settings and write no trace.
  bool explain = false;
  bool json = false;
};

// Registers `trace generate` with its options; `options` must outlive the parsing.
CLI::App* AddTraceGenerate(CLI::App& app, TraceGenerateOptions& options);
// Runs `trace generate` and returns the exit code.
Result<int> TraceGenerate(const TraceGenerateOptions& options);

}  // namespace dynamiccl
