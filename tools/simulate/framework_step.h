// SPDX-License-Identifier: Apache-2.0
// One training step of a framework (traces/generators) on a system, as a job of the simulator.
#pragma once

#include "src/simulator/transfer_demand.h"
#include "tools/simulate/accelerator.h"
#include "tools/simulate/step_summary.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl {

struct FrameworkStep {
  std::string framework = "fsdp2";
  ModelShape model;
  WorldShape world;
  SettingTexts settings;
  int64_t sequences = 1;    // of a rank, in each pass
  bool recomputes = false;  // forward once more in the backward; Megatron's recompute=full says so itself
  double forward_ms = 0;    // of one pass; 0: from the accelerator and the transformer's shape
  Accelerator accelerator;
  CollectiveConfig config = kLeaveNcclAlone;
  double network_gbps = 0;  // of a node; 0: NetworkGbps of the system
};

struct FrameworkJob {
  SimulatedJob job;
  std::vector<CollectiveLabel> labels;  // of the one program
};

// The second step: in the first one frameworks do what they do once. Errors: of the generator and of the
// system, and where nothing says how long the model computes.
Result<FrameworkJob> JobOfFramework(const FrameworkStep& step, const System& system);

}  // namespace dynamiccl
