// SPDX-License-Identifier: Apache-2.0
// Changes the policy of running jobs: the file that they watch is replaced, and all ranks of a job take it up
// at one agreed call (docs/switching.md). Nothing is sent to a job.
#pragma once

#include <string>

#include "src/base/sha256.h"
#include "src/base/status.h"

namespace dynamiccl {

// The file that keeps the policy before the last change, in the policy's folder.
std::string PreviousOf(const std::string& policy_path);

// Digests of the policy file before and after the change.
struct PolicySwap {
  Sha256Digest before{};
  Sha256Digest after{};
};

// Replaces the policy by `fresh`, which is read and checked completely first. A refused policy changes
// nothing.
Result<PolicySwap> SwapPolicy(const std::string& policy_path, const std::string& fresh);
// Returns to the policy before the last change; a second rollback undoes the first.
Result<PolicySwap> RollBackPolicy(const std::string& policy_path);

}  // namespace dynamiccl
