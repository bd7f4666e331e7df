// SPDX-License-Identifier: Apache-2.0
// Keeps the present policy under another name, then replaces the file in one step.
#include "tools/running/policy_swap.h"

#include "src/base/whole_file.h"
#include "src/policy/policy_file.h"
#include "src/policy/policy_layout.h"

namespace dynamiccl {
namespace {

// Content of a policy file that was parsed without an error.
struct CheckedPolicy {
  std::vector<std::byte> bytes;
  Sha256Digest digest{};
};

// Reads and checks a policy file. The caller writes exactly these bytes later, even if the file changes in
// the meantime.
Result<CheckedPolicy> ReadChecked(const std::string& path) {
  DYNAMICCL_TRY(WholeFile file, ReadWholeFile(path, kMaxPolicyBytes));
  DYNAMICCL_TRY(const auto policy, ParsePolicy(file.bytes, path));
  return CheckedPolicy{std::move(file.bytes), policy->sha256};
}

// Keeps the present policy as the previous one, then replaces the file. In this order a job that reads the
// file in between sees either the old or the new policy.
Status Exchange(const std::string& path, const CheckedPolicy& now, const CheckedPolicy& next) {
  DYNAMICCL_CHECK_OK(WriteWholeFile(PreviousOf(path), now.bytes));
  return WriteWholeFile(path, next.bytes);
}

}  // namespace

std::string PreviousOf(const std::string& policy_path) {
  return policy_path + ".previous";
}

Result<PolicySwap> SwapPolicy(const std::string& policy_path, const std::string& fresh) {
  DYNAMICCL_TRY(const CheckedPolicy next, ReadChecked(fresh));
  DYNAMICCL_TRY(const CheckedPolicy now, ReadChecked(policy_path));
  DYNAMICCL_CHECK_OK(Exchange(policy_path, now, next));
  return PolicySwap{now.digest, next.digest};
}

Result<PolicySwap> RollBackPolicy(const std::string& policy_path) {
  const auto next = ReadChecked(PreviousOf(policy_path));
  if (!next) {
    return WithHint(Wrap(next.error(), "nothing to roll back to"),
                    "`dynamiccl ctl swap` keeps the policy before it there");
  }
  DYNAMICCL_TRY(const CheckedPolicy now, ReadChecked(policy_path));
  DYNAMICCL_CHECK_OK(Exchange(policy_path, now, *next));
  return PolicySwap{now.digest, next->digest};
}

}  // namespace dynamiccl
