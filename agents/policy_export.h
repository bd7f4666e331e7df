// SPDX-License-Identifier: Apache-2.0
// Both agents as one policy file that this machine has been seen to compute exactly.
#pragma once

#include <string>
#include <vector>

#include "agents/config/config_export.h"
#include "agents/provenance.h"
#include "agents/trigger/trigger_export.h"
#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

struct TrainedAgents {
  const TriggerNetwork* trigger = nullptr;
  const std::vector<CallSequence>* golden_sequences = nullptr;
  const ConfigNetworks* config = nullptr;
  const std::vector<ConfigSample>* samples = nullptr;
  const PolicyTensors* trees = nullptr;  // those of TrainTrees; null: networks alone
};

// Quantised, with the golden outputs of the integer reference.
Result<std::unique_ptr<Policy>> MakePolicy(const TrainedAgents& agents, const Provenance& provenance);

// Writes the file, reads it back, and removes it unless all golden vectors are computed bit for bit. Returns
// its SHA-256.
Result<Sha256Digest> ExportPolicy(const std::string& path, const Policy& policy);

}  // namespace dynamiccl::agents
