// SPDX-License-Identifier: Apache-2.0
// What a user may say to `dynamiccl replay`.
#pragma once

#include <string>
#include <vector>

#include "tools/launch_options.h"
#include "tools/replay/replay_session.h"

namespace dynamiccl {

struct ReplayCommandOptions {
  std::vector<std::string> inputs;
  ReplayWindow window;
  std::vector<int64_t> steps;   // first, last
  std::vector<double> seconds;  // begin, end
  std::string measurements;
  std::string topology;  // of the measurements
  std::string system;    // to simulate; empty: over a library
  ReplayOptions options;
  bool compare = false;
  int rounds = 5;
  std::string best_rules;  // where the rules of the best are written; empty: nowhere
  std::string arm_report;  // of one arm of a comparison: where rank 0 writes what it measured
  bool json = false;
  LaunchOptions launch;
};

}  // namespace dynamiccl
