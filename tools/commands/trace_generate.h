// SPDX-License-Identifier: Apache-2.0
// `dynamiccl trace generate`: the wire pattern of a public framework as a labelled trace, without running it.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "src/base/status.h"
#include "traces/generators/world_shape.h"

namespace dynamiccl {

struct TraceGenerateOptions {
  std::string framework;
  std::string model = "gpt";
  std::string parameters;  // a file; instead of `model`
  std::string settings;
  std::string output;
  WorldShape world;
  int steps = 3;
  int ranks_per_node = 0;
  bool explain = false;
  bool json = false;
};

CLI::App* AddTraceGenerate(CLI::App& app, TraceGenerateOptions& options);
Result<int> TraceGenerate(const TraceGenerateOptions& options);

}  // namespace dynamiccl
