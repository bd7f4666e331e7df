// SPDX-License-Identifier: Apache-2.0
// Policy files that are read again while a job runs: the leader notices a new one, and every rank reads it.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>

#include "src/policy/policy.h"

namespace dynamiccl {

// Whether the file at a path became another policy. Owned by the leader's SwitchLeadership; its thread alone.
class PolicyWatch {
 public:
  // `known`: digest of the policy in use.
  PolicyWatch(std::string path, const Sha256Digest& known);

  // The digest of a new policy, once. A file that is no policy is logged once and changes nothing. Reads the
  // file only when its inode, size or time has changed.
  std::optional<Sha256Digest> Changed();
  // The digest of the policy that was in use at the start.
  const Sha256Digest& first() const { return first_; }

 private:
  const std::string path_;
  const Sha256Digest first_;
  Sha256Digest known_;
  struct stat seen_ = {};
};

// The policy of a digest: the one at the start, the last one read, or what the file at a path is now. One
// thread.
class PolicyByDigest {
 public:
  PolicyByDigest(std::string path, std::shared_ptr<const Policy> first)
      : path_(std::move(path)), first_(std::move(first)) {}

  // Null when it is none of these, so that this rank cannot use it. May read the file, which takes
  // milliseconds.
  std::shared_ptr<const Policy> Read(const Sha256Digest& digest);

 private:
  const std::string path_;
  const std::shared_ptr<const Policy> first_;
  std::shared_ptr<const Policy> last_;
};

}  // namespace dynamiccl
