// SPDX-License-Identifier: Apache-2.0
// Policy files that are replaced while a job runs: the leader notices a new one, and every rank reads it.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "src/policy/policy.h"

namespace dynamiccl {

// Compares inode, size and time of change, because reading a watched file each time would cost milliseconds.
bool SameFile(const struct stat& a, const struct stat& b);

// Notices when the file at a path becomes another policy. Owned by the leader's WatchedFiles; only its thread
// uses it.
class PolicyWatch {
 public:
  // `known`: digest of the policy in use.
  PolicyWatch(std::string path, const Sha256Digest& known);

  // Returns a new policy once, else null. If the file is no valid policy, this is logged once and changes
  // nothing. Reads the file only if its inode, size or time has changed.
  std::shared_ptr<const Policy> Changed();
  // Returns the digest of the policy that was in use at the start.
  const Sha256Digest& first() const { return first_; }

 private:
  const std::string path_;
  const Sha256Digest first_;
  Sha256Digest known_;
  struct stat seen_ = {};
};

// Finds the policy with a given digest: the one at the start, the last one read, or the present file at a
// path. One thread.
class PolicyByDigest {
 public:
  PolicyByDigest(std::string path, std::shared_ptr<const Policy> first)
      : path_(std::move(path)), first_(std::move(first)) {}

  // Returns null if none of these three policies has the digest; this rank then cannot use the policy. May
  // read the file, which takes milliseconds.
  std::shared_ptr<const Policy> Read(const Sha256Digest& digest);

 private:
  const std::string path_;
  const std::shared_ptr<const Policy> first_;
  std::shared_ptr<const Policy> last_;
};

}  // namespace dynamiccl
