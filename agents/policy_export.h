// SPDX-License-Identifier: Apache-2.0
// Writes both agents as one policy file, and checks that this machine computes the file's golden vectors
// exactly.
#pragma once

#include <string>
#include <vector>

#include "agents/config/config_export.h"
#include "agents/provenance.h"
#include "agents/structure/structure_export.h"
#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// The parts of a policy. All pointers must outlive the call; only `trees` may be null.
struct TrainedAgents {
  const FloatStructureNetwork* structure = nullptr;
  // Sequences whose first calls become the structure agent's golden inputs.
  const std::vector<CallSequence>* golden_sequences = nullptr;
  const ConfigNetworks* config = nullptr;
  // The training samples, from which golden inputs, domain and gate are computed.
  const std::vector<ConfigSample>* samples = nullptr;
  // Tensors whose trees TrainTrees has filled. Null means that the policy has networks only.
  const PolicyTensors* trees = nullptr;
};

// Quantises both agents and adds the golden outputs of the integer reference. An error means that weights do
// not fit into the format's integers.
Result<std::unique_ptr<Policy>> MakePolicy(const TrainedAgents& agents, const Provenance& provenance);

// Writes the file and reads it back, which checks all golden vectors bit for bit. If that fails, the file is
// removed and the error returned. Returns the file's SHA-256.
Result<Sha256Digest> ExportPolicy(const std::string& path, const Policy& policy);

}  // namespace dynamiccl::agents
