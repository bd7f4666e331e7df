// SPDX-License-Identifier: Apache-2.0
// Policy files that are read again while a job runs. Control threads only.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>

#include "src/policy/policy.h"

namespace dynamiccl {

// Whether the file at a path became another policy.
class PolicyWatch {
 public:
  // `known`: digest of the policy in use.
  PolicyWatch(std::string path, const Sha256Digest& known);

  // The digest of a new policy, once. A file that is no policy is said once and changes nothing.
  std::optional<Sha256Digest> Changed();

 private:
  const std::string path_;
  Sha256Digest known_;
  struct stat seen_ = {};
};

// The policy of a digest, as far as the file at a path is it.
class PolicyByDigest {
 public:
  explicit PolicyByDigest(std::string path) : path_(std::move(path)) {}

  // Null when the file is another policy, or none.
  std::shared_ptr<const Policy> Read(const Sha256Digest& digest);

 private:
  const std::string path_;
  std::shared_ptr<const Policy> last_;
};

}  // namespace dynamiccl
