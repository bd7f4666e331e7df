// SPDX-License-Identifier: Apache-2.0
// Why a policy, or a rule over it, chooses what it chooses for one call on one fabric: every config with what
// NCCL's model and the policy's parts say of it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "src/decision/override_rules.h"
#include "src/policy/config_inference.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

struct ExplainedConfig {
  CollectiveConfig config;
  double estimate_us = 0;                       // NCCL's cost model
  double predicted_us = 0;                      // what the policy believes
  std::array<double, kEnsemble> networks_us{};  // each network's word; their spread is the policy's doubt
  std::optional<double> trees_us;               // in a policy with trees
  bool promised = false;                        // every network and the trees promise the gate's gain
  std::string outside;                          // the input that training did not see; empty: none
};

struct Explanation {
  CollectiveConfig default_config;       // what NCCL would use
  ConfigChoice choice;                   // the policy's
  double gate_percent = 0;               // the gain that must be promised
  std::string outside;                   // of the call and the fabric, as above
  std::optional<OverrideRule> rule;      // that decides in the policy's place
  std::vector<ExplainedConfig> configs;  // least predicted time first; the default among them
};

// `rules` may be null.
Explanation Explain(const Policy& policy, const CostModelInput& fabric, const ConfigQuestion& question,
                    const OverrideRules* rules);

// The fabric that policies are shown on where no measured one is named.

// NVLink inside nodes and InfiniBand between them, with NCCL's constants for Hopper.
MeasurementContext AssumedFabric(int n_ranks = 16, int n_nodes = 2);

}  // namespace dynamiccl
