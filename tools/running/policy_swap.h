// SPDX-License-Identifier: Apache-2.0
// Changes the policy of jobs that are running: the file that they watch is replaced, and all ranks take it up
// at one agreed call (docs/switching.md). Nothing is sent to a job.
#pragma once

#include <string>

#include "src/base/sha256.h"
#include "src/base/status.h"

namespace dynamiccl {

// Beside the file: what it was before the last change.
std::string PreviousOf(const std::string& policy_path);

struct PolicySwap {
  Sha256Digest before{};
  Sha256Digest after{};
};

// `fresh` is read and checked whole first; what is refused changes nothing.
Result<PolicySwap> SwapPolicy(const std::string& policy_path, const std::string& fresh);
// Back to what it was before the last change, which a second rollback undoes.
Result<PolicySwap> RollBackPolicy(const std::string& policy_path);

}  // namespace dynamiccl
