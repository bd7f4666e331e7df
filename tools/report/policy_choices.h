// SPDX-License-Identifier: Apache-2.0
// Lists which configs a policy chooses for a range of sizes, on measured fabrics and on models of clusters.
#pragma once

#include <string>
#include <vector>

#include "src/policy/config_inference.h"
#include "src/policy/policy.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// The config that the policy chooses for one collective and size on one fabric.
struct PolicyChoice {
  // Name of the fabric or topology.
  std::string fabric;
  int n_ranks = 0;
  int n_nodes = 0;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  ConfigChoice choice;
};

// The policy's choices on `fabric` for every tunable collective and for sizes from 1 KiB to 64 MiB in powers
// of two.
std::vector<PolicyChoice> ChoicesOn(const Policy& policy, const MeasurementContext& fabric);

// Returns why the policy chose as it did, as text, for example "outside of what training saw".
const char* ReasonText(ChoiceReason reason);

// A model of two nodes with eight ranks each, with NCCL's constants for Hopper. It is used if no measured
// fabric is named.
MeasurementContext HopperPair();
// Models of Hopper clusters with 2 to 1024 ranks, eight on each node.
std::vector<MeasurementContext> HopperClusters();

}  // namespace dynamiccl
