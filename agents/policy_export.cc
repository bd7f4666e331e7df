// SPDX-License-Identifier: Apache-2.0
// Makes a policy file from the float agents in these steps: quantise, fill golden inputs, compute golden
// outputs, describe the origin, write the file, read it back.
#include "agents/policy_export.h"

#include <cstdio>
#include <cstring>

#include "agents/integer_reference.h"
#include "src/policy/policy_file.h"

namespace dynamiccl::agents {
namespace {

// The NCCL release whose cost formula src/cost_model follows, as NCCL_VERSION_CODE: 2.30.7. The agent
// predicts residuals over that formula, so the policy is valid for this release.
constexpr uint32_t kPriorNcclVersion = 23007;

// Copies the trees only; the other tensors of `from` are not valid.
void CopyTrees(const PolicyTensors& from, PolicyTensors& to) {
  to.trees = from.trees;
  std::memcpy(to.tree_nodes, from.tree_nodes, sizeof(to.tree_nodes));
  std::memcpy(to.tree_leaves, from.tree_leaves, sizeof(to.tree_leaves));
}

}  // namespace

Result<std::unique_ptr<Policy>> MakePolicy(const TrainedAgents& agents, const Provenance& provenance) {
  auto policy = std::make_unique<Policy>();
  DYNAMICCL_CHECK_OK(ExportStructure(*agents.structure, policy->tensors));
  DYNAMICCL_CHECK_OK(ExportConfig(*agents.config, *agents.samples, policy->tensors));
  if (agents.trees != nullptr) CopyTrees(*agents.trees, policy->tensors);
  FillGoldenTokens(*agents.golden_sequences, policy->tensors);
  FillGoldenFeatures(*agents.samples, policy->tensors);
  FillGoldenOutputs(policy->tensors);
  policy->provenance = FormatProvenance(provenance);
  policy->training_data_id = TrainingDataId(provenance);
  policy->min_nccl_version = policy->max_nccl_version = kPriorNcclVersion;
  return policy;
}

Result<Sha256Digest> ExportPolicy(const std::string& path, const Policy& policy) {
  DYNAMICCL_TRY(const Sha256Digest digest, WritePolicyFile(path, policy));
  const auto read = ReadPolicyFile(path);
  const bool equal = read && (*read)->sha256 == digest &&
                     std::memcmp(&(*read)->tensors, &policy.tensors, sizeof(PolicyTensors)) == 0;
  if (equal) return digest;
  std::remove(path.c_str());
  if (!read) return tl::unexpected<Error>(read.error());
  return MakeError(ErrorKind::kInternal, "{}: reads back differently than it was written; removed", path);
}

}  // namespace dynamiccl::agents
