// SPDX-License-Identifier: Apache-2.0
// Converts one training step of a framework (traces/generators) on a system into a job of the simulator.
#pragma once

#include "src/simulator/transfer_demand.h"
#include "tools/simulate/accelerator.h"
#include "tools/simulate/step_summary.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl {

// The step to simulate: framework, model, GPU and system.
struct FrameworkStep {
  std::string framework = "fsdp2";
  ModelShape model;
  WorldShape world;
  SettingTexts settings;
  // Number of sequences that a rank computes in each pass.
  int64_t sequences = 1;
  // True: the backward pass runs the forward pass once more. Megatron's setting recompute=full implies it.
  bool recomputes = false;
  // Milliseconds of one forward pass; 0: the time is computed from the GPU and the shape of the transformer.
  double forward_ms = 0;
  Accelerator accelerator;
  CollectiveConfig config = kLeaveNcclAlone;
  // GB/s between one node and the network; 0: the system's own value (NetworkGbps).
  double network_gbps = 0;
};

// A job for the simulator in which all ranks run one program.
struct FrameworkJob {
  SimulatedJob job;
  // Role and size of each collective of the program.
  std::vector<CollectiveLabel> labels;
};

// Converts the framework's second step into a job, because frameworks do some things only in the first step.
// Returns errors of the generator of calls and of the system. It is also an error if nothing says how long
// the model computes.
Result<FrameworkJob> JobOfFramework(const FrameworkStep& step, const System& system);

}  // namespace dynamiccl
