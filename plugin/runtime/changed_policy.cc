// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/changed_policy.h"

#include "src/base/job_fail_point.h"
#include "src/base/log.h"
#include "src/policy/policy_file.h"

namespace dynamiccl {

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

PolicyWatch::PolicyWatch(std::string path, const Sha256Digest& known)
    : path_(std::move(path)), first_(known), known_(known) {}

std::shared_ptr<const Policy> PolicyWatch::Changed() {
  struct stat now = {};
  if (::stat(path_.c_str(), &now) != 0 || SameFile(now, seen_)) return nullptr;
  seen_ = now;
  // At the first check, the file is nearly always the policy in use.
  const auto digest = ReadPolicyDigest(path_);
  if (digest && *digest == known_) return nullptr;
  auto policy = ReadPolicyFile(path_);
  if (!policy) {
    Log(LogLevel::kWarn, "the changed policy is not used: {}", policy.error().message);
    return nullptr;
  }
  if ((*policy)->sha256 == known_) return nullptr;
  known_ = (*policy)->sha256;
  PassJobFailPoint(JobFailPoint::kPolicyChanged);
  return std::move(*policy);
}

std::shared_ptr<const Policy> PolicyByDigest::Read(const Sha256Digest& digest) {
  for (const auto& kept : {first_, last_}) {
    if (kept && kept->sha256 == digest) return kept;
  }
  PassJobFailPoint(JobFailPoint::kPolicyRead);
  auto policy = ReadPolicyFile(path_);
  if (!policy || (*policy)->sha256 != digest) return nullptr;
  last_ = std::move(*policy);
  return last_;
}

}  // namespace dynamiccl
