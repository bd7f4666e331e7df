// SPDX-License-Identifier: Apache-2.0
// Explains why a policy, or a rule over it, makes its choice for one call on one fabric: lists every config
// with the predictions of NCCL's model and of the policy's parts for it. `dynamiccl inspect` prints it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "src/decision/override_rules.h"
#include "src/policy/config_inference.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// One config. Times are microseconds.
struct ExplainedConfig {
  CollectiveConfig config;
  // The estimate of NCCL's cost model.
  double estimate_us = 0;
  // The policy's predicted time.
  double predicted_us = 0;
  // The time that each network of the policy predicts. The spread of the times is the policy's uncertainty.
  std::array<double, kEnsemble> networks_us{};
  // Prediction of the trees, in a policy that has them.
  std::optional<double> trees_us;
  bool promised = false;  // every network and the trees predict at least the gate's gain
  // The input about this config that lies outside of the range that the policy was trained on; empty: none.
  std::string outside;
};

// The choice and all configs.
struct Explanation {
  // The config that NCCL would use.
  CollectiveConfig default_config;
  // The policy's choice.
  ConfigChoice choice;
  // Gain in percent that must be predicted before the policy leaves the default.
  double gate_percent = 0;
  // The input about the call or the fabric that lies outside of the range that the policy was trained on;
  // empty: none.
  std::string outside;
  // The rule that decides instead of the policy, if one matches.
  std::optional<OverrideRule> rule;
  // Least predicted time first; the default is among them.
  std::vector<ExplainedConfig> configs;
};

// Explains the choice for one call. As in a job, the policy is asked about the least size of the call's size
// class, and rules about the size itself. `rules` may be null. If NCCL's cost model has no price for the
// default, `configs` stays empty.
Explanation Explain(const Policy& policy, const CostModelInput& fabric, const ConfigQuestion& question,
                    const OverrideRules* rules);

// The fabric on which policies are shown where no measured one is named: NVLink inside nodes and InfiniBand
// between them, with NCCL's constants for Hopper.
MeasurementContext AssumedFabric(int n_ranks = 16, int n_nodes = 2);

}  // namespace dynamiccl
