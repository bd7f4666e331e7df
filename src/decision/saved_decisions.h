// SPDX-License-Identifier: Apache-2.0
// The table entries of one run as a file. Another run uses the file in place of a policy, so both runs decide
// alike. Grammar: docs/formats/decisions.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "src/base/sha256.h"
#include "src/base/status.h"
#include "src/decision/decision_table.h"

namespace dynamiccl {

// A communicator's shape and a table's key: everything that an entry depends on beside the policy and the
// fabric.
struct SavedKey {
  int n_ranks = 1;
  int n_nodes = 1;
  TableKey key;

  auto AsTuple() const {
    return std::tuple(n_ranks, n_nodes, key.collective, key.size_class.index, key.role);
  }
  friend bool operator<(const SavedKey& a, const SavedKey& b) { return a.AsTuple() < b.AsTuple(); }
  friend bool operator==(const SavedKey& a, const SavedKey& b) { return a.AsTuple() == b.AsTuple(); }
};

// The entries of one file. A plain value; while it changes, only one thread may use it. Equal entries have
// equal texts, in whatever order the entries were set.
class SavedDecisions {
 public:
  // `policy_hash`: hexadecimal SHA-256 of the policy that made the entries and that recognises roles; empty:
  // no policy.
  explicit SavedDecisions(std::string policy_hash = "") : policy_hash_(std::move(policy_hash)) {}
  // Reads a file's text. `name` is used in errors, which read "<name>:<line>: <what>". A truncated or changed
  // file is refused because of its checksum.
  static Result<SavedDecisions> Parse(std::string_view text, const std::string& name);
  // Reads and parses a file of at most 16 MiB.
  static Result<SavedDecisions> ReadFile(const std::string& path);

  void Set(const SavedKey& key, const CollectiveConfig& config) { configs_[key] = config; }
  // Returns the saved choice; kLeaveNcclAlone if there is none for the key.
  CollectiveConfig Find(const SavedKey& key) const;
  const std::map<SavedKey, CollectiveConfig>& configs() const { return configs_; }

  const std::string& policy_hash() const { return policy_hash_; }

  // Returns the text of the file, from which Parse gives back equal entries.
  std::string Text() const;
  // SHA-256 of Text(), which ranks attest.
  Sha256Digest digest() const;

 private:
  std::string policy_hash_;
  std::map<SavedKey, CollectiveConfig> configs_;
};

}  // namespace dynamiccl
