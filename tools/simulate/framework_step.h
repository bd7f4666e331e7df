// SPDX-License-Identifier: Apache-2.0
// One training step of a framework (traces/generators) on a system, as a job of the simulator.
#pragma once

#include "src/simulator/transfer_demand.h"
#include "tools/simulate/accelerator.h"
#include "tools/simulate/step_summary.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl {

// A framework's step to simulate.
struct FrameworkStep {
  std::string framework = "fsdp2";
  ModelShape model;
  WorldShape world;
  SettingTexts settings;
  // Number of sequences that a rank computes in each pass.
  int64_t sequences = 1;
  // The backward pass runs the forward pass once more. Megatron's setting recompute=full implies it.
  bool recomputes = false;
  // Milliseconds of one forward pass. 0: computed from the accelerator and the transformer's shape.
  double forward_ms = 0;
  Accelerator accelerator;
  CollectiveConfig config = kLeaveNcclAlone;
  // GB/s of a node's network; 0: NetworkGbps of the system.
  double network_gbps = 0;
};

// A job in which all ranks run one program.
struct FrameworkJob {
  SimulatedJob job;
  // Labels of the program's collectives.
  std::vector<CollectiveLabel> labels;
};

// Returns the job of a framework's second step, because frameworks do some things only in the first step.
// Returns errors of the generator and of the system, and an error if nothing says how long the model
// computes.
Result<FrameworkJob> JobOfFramework(const FrameworkStep& step, const System& system);

}  // namespace dynamiccl
