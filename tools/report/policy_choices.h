// SPDX-License-Identifier: Apache-2.0
// The choices of a policy for a range of sizes, on fabrics that were measured or that model a cluster.
#pragma once

#include <string>
#include <vector>

#include "src/policy/config_inference.h"
#include "src/policy/policy.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// The policy's answer for one collective and size on one fabric.
struct PolicyChoice {
  // Name of the fabric or topology.
  std::string fabric;
  int n_ranks = 0;
  int n_nodes = 0;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  ConfigChoice choice;
};

// The policy's answers on `fabric` for every tunable collective and for sizes from 1 KiB to 64 MiB in
// octaves.
std::vector<PolicyChoice> ChoicesOn(const Policy& policy, const MeasurementContext& fabric);

// The reason as text, for example "outside of what training saw".
const char* ReasonText(ChoiceReason reason);

// Two nodes of eight ranks with NCCL's constants for Hopper. It serves where no measured fabric is named.
MeasurementContext HopperPair();
// Fabrics of the same kind with 2 to 1024 ranks, eight on a node.
std::vector<MeasurementContext> HopperClusters();

}  // namespace dynamiccl
