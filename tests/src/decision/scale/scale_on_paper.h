// SPDX-License-Identifier: Apache-2.0
// Runs jobs of many ranks on simulated systems. Each job runs twice with the same noise: under the shipped
// guard, and with NCCL's picks alone.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/src/decision/scale/scaled_step.h"
#include "tests/src/decision/scale/switch_cost.h"

namespace dynamiccl::testing {

// A change of the fabric at half of a job's steps.
struct ScaleEvent {
  const char* name = "";
  std::vector<NetworkLoad> before, after;
};
const std::vector<ScaleEvent>& ScaleEvents();

struct ScaleOptions {
  int steps = 1000;
  int seeds = 5;
  double step_noise = 0.02;
  // Configs that are expected to take more than this many times NCCL's time are not tried. 0 means the
  // shipped limit.
  double most_predicted = 0;
};

// Times as shares of the time of the same job with NCCL's picks, one value for each seed.
struct ScaleResult {
  ScaledStep before, after;
  std::vector<double> gained;     // Of the whole job; negative values are losses.
  std::vector<double> at_end;     // Regret of a step with the last choices, compared with the best configs.
  std::vector<double> lost_most;  // The largest loss of the job so far, at any step from the 20th on.
  std::vector<double> worst_20;   // The largest loss of any 20 steps against NCCL's picks.
  std::vector<double> versions;   // The number of agreed tables.
  std::vector<double> message_rate;  // Control messages at the leader per second of the job.
  SwitchCost first_switch, later_switch;
  double to_win() const;  // The gain with the best legal configs from the first step on.
  double regret() const;  // The median of the job's time divided by that with the best configs.
};

Result<ScaleResult> RunAtScale(const ScaledCase& scaled, const ScaleEvent& event,
                               const ScaleOptions& options);
// Does the same for given steps.
ScaleResult RunSteps(const ScaledStep& before, const ScaledStep& after, int ranks,
                     const ScaleOptions& options);

// Return the messages per second that ranks send to the leader while no table changes. Each rank sends one
// digest of decisions per second with new calls. It sends at most one message for four times, or for all its
// times after 20 ms.
double DigestRate(int ranks, double calls_per_second);
double TimesRate(int ranks, double timed_per_second);

}  // namespace dynamiccl::testing
