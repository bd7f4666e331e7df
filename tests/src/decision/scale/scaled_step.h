// SPDX-License-Identifier: Apache-2.0
// Computes one generated training step at many ranks as the keys of a job under the guard: the time of NCCL's
// pick and of every other config on a simulated system, and the share of it that the program waits for.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/simulator/simulated_job.h"
#include "tests/src/decision/guard/simulated_job.h"
#include "tools/simulate/described_system.h"

namespace dynamiccl::testing {

struct ScaledCase {
  const DescribedSystem* system = nullptr;
  std::string framework = "fsdp2";
  int ranks = 64;
  std::vector<NetworkLoad> loads;  // For the whole step; empty for a healthy fabric.
};

struct ScaledStep {
  std::vector<TrueKey> keys;
  std::vector<size_t> places;  // The key of each call of the step.
  double compute_ns = 0;       // The step's time without the exposed calls.
  double nccl_ns = 0;          // The step's time with NCCL's own picks.
  // Step times with the best legal config of every key, and with the best one that a job may try. A key's
  // config is judged by the step that it makes while the other keys use NCCL's picks.
  double best_ns = 0;
  double best_tried_ns = 0;
};

// The configs of a key are those of UnlikeFirst, in its order, with its predictions for the healthy fabric. A
// config's effect on the step is simulated with the other keys at NCCL's pick, and effects are added.
Result<ScaledStep> StepAtScale(const ScaledCase& scaled);

}  // namespace dynamiccl::testing
