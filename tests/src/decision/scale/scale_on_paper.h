// SPDX-License-Identifier: Apache-2.0
// Runs jobs of many ranks on simulated systems. Each job runs twice with the same noise: under the shipped
// guard, and with NCCL's picks alone.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/src/decision/scale/scaled_step.h"
#include "tests/src/decision/scale/switch_cost.h"

namespace dynamiccl::testing {

// The number of steps of a job, and the change of the fabric at half of them.
struct ScaleEvent {
  const char* name = "";
  std::vector<NetworkLoad> before, after;
};
const std::vector<ScaleEvent>& ScaleEvents();

struct ScaleOptions {
  int steps = 1000;
  int seeds = 5;
  double step_noise = 0.02;
  // Configs that are expected to take more than this many times NCCL's time are not tried; 0: the shipped
  // limit.
  double most_predicted = 0;
};

// Times as shares of the time of the same job with NCCL's picks, one value for each seed.
struct ScaleResult {
  ScaledStep before, after;
  std::vector<double> gained;        // of the whole job; below 0: lost
  std::vector<double> at_end;        // regret of a step with the last choices, over the best configs
  std::vector<double> lost_most;     // of the job so far, after any 20 steps from the 20th on
  std::vector<double> worst_20;      // longer than with NCCL's picks, of any 20 steps
  std::vector<double> versions;      // tables that were agreed on
  std::vector<double> message_rate;  // control messages a second of the job, at the leader
  SwitchCost first_switch, later_switch;
  double to_win() const;  // with the best legal configs from the first step on
  double regret() const;  // median: the job's time over that with the best configs
};

Result<ScaleResult> RunAtScale(const ScaledCase& scaled, const ScaleEvent& event,
                               const ScaleOptions& options);
// Does the same for steps that are given.
ScaleResult RunSteps(const ScaledStep& before, const ScaledStep& after, int ranks,
                     const ScaleOptions& options);

// Returns the messages that ranks send to the leader in a second while no table changes. Digests of
// decisions: one for each rank and second with new calls. Times of calls, at most: one message for four
// times, or for all there are after 20 ms.
double DigestRate(int ranks, double calls_per_second);
double TimesRate(int ranks, double timed_per_second);

}  // namespace dynamiccl::testing
