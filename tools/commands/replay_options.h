// SPDX-License-Identifier: Apache-2.0
// The options of `dynamiccl replay`.
#pragma once

#include <string>
#include <vector>

#include "tools/launch_options.h"
#include "tools/replay/replay_session.h"

namespace dynamiccl {

// The options as typed; FillRest derives what depends on several.
struct ReplayCommandOptions {
  std::vector<std::string> inputs;
  ReplayWindow window;
  // First and last step to replay, both included; empty: all.
  std::vector<int64_t> steps;
  // Begin and end of the replayed part, in seconds since the first call; empty: all.
  std::vector<double> seconds;
  std::string measurements;
  // Name of the topology in the file `measurements` with whose times the replayed times are compared.
  std::string topology;
  // System (machine of the simulator) on which the trace is replayed. Empty: it is replayed over a library.
  std::string system;
  ReplayOptions options;
  bool compare = false;
  int rounds = 5;
  // Seconds after which the search for the best configs starts no further run.
  double search_seconds = 120;
  // File to which the rules with the best configs are written; empty: none.
  std::string best_rules;
  // File to which rank 0 writes the times that it measured. Set only where a comparison starts the replay.
  std::string arm_report;
  bool json = false;
  LaunchOptions launch;
};

}  // namespace dynamiccl
