// SPDX-License-Identifier: Apache-2.0
// Jobs of many ranks on simulated systems, each run twice with the same noise: under the shipped guard, and
// with NCCL's picks alone.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/src/decision/scale/scaled_step.h"
#include "tests/src/decision/scale/switch_cost.h"

namespace dynamiccl::testing {

// Steps of a job, and the change of the fabric in its middle.
struct ScaleEvent {
  const char* name = "";
  std::vector<NetworkLoad> before, after;
};
const std::vector<ScaleEvent>& ScaleEvents();

struct ScaleOptions {
  int steps = 1000;
  int seeds = 5;
  double step_noise = 0.02;
  // Configs that are expected to take more than so many times NCCL's time are not tried; 0: as shipped.
  double most_predicted = 0;
};

// Shares of the time of the same job with NCCL's picks; one value a seed.
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
// The same for steps that are known.
ScaleResult RunSteps(const ScaledStep& before, const ScaledStep& after, int ranks,
                     const ScaleOptions& options);

// Messages a second that ranks send to the leader where no table changes. Digests of decisions: one a rank
// and second, where calls are new. Times of calls, at most: four together, or after 20 ms what is there.
double DigestRate(int ranks, double calls_per_second);
double TimesRate(int ranks, double timed_per_second);

}  // namespace dynamiccl::testing
