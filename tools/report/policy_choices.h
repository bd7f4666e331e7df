// SPDX-License-Identifier: Apache-2.0
// What a policy would choose over sizes, on fabrics that were measured or that stand for a cluster.
#pragma once

#include <string>
#include <vector>

#include "src/policy/config_inference.h"
#include "src/policy/policy.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

struct PolicyChoice {
  std::string fabric;
  int n_ranks = 0;
  int n_nodes = 0;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  ConfigChoice choice;
};

// Every collective, 1 KiB to 64 MiB in octaves.
std::vector<PolicyChoice> ChoicesOn(const Policy& policy, const MeasurementContext& fabric);

// "outside of what training saw"
const char* ReasonText(ChoiceReason reason);

// 16 ranks on two nodes with NCCL's constants for Hopper: what stands when no measured fabric is named.
MeasurementContext HopperPair();
// Likewise with 2 to 1024 ranks, eight a node.
std::vector<MeasurementContext> HopperClusters();

}  // namespace dynamiccl
