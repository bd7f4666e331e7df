// SPDX-License-Identifier: Apache-2.0
// The entries that decision tables had in a run, as a file that another run uses in place of a policy.
// Grammar: docs/formats/decisions.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "src/base/sha256.h"
#include "src/base/status.h"
#include "src/decision/decision_table.h"

namespace dynamiccl {

// A communicator's shape and a table's key: what an entry depends on, with the policy and the fabric.
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

class SavedDecisions {
 public:
  // `policy_hash`: of the policy that made the entries and that recognises roles; empty: none.
  explicit SavedDecisions(std::string policy_hash = "") : policy_hash_(std::move(policy_hash)) {}
  // `name` stands in errors, which read "<name>:<line>: <what>".
  static Result<SavedDecisions> Parse(std::string_view text, const std::string& name);
  static Result<SavedDecisions> ReadFile(const std::string& path);

  void Set(const SavedKey& key, const CollectiveConfig& config) { configs_[key] = config; }
  // Leaves NCCL alone where nothing is saved.
  CollectiveConfig Of(const SavedKey& key) const;
  const std::map<SavedKey, CollectiveConfig>& configs() const { return configs_; }

  const std::string& policy_hash() const { return policy_hash_; }

  // Equal for equal entries; Parse(Text()) gives them back.
  std::string Text() const;
  // SHA-256 of Text(): what ranks attest.
  Sha256Digest digest() const;

 private:
  std::string policy_hash_;
  std::map<SavedKey, CollectiveConfig> configs_;
};

}  // namespace dynamiccl
