// SPDX-License-Identifier: Apache-2.0
// Override rules: choices a user writes down, in the CSV of NCCL's example tuner or in TOML, which win over
// the policy. Grammar: docs/formats/override_rules.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/sha256.h"
#include "src/base/status.h"
#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/role.h"

namespace dynamiccl {

// What a rule is matched against: values equal on all ranks only.
struct RuleSubject {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total
  int n_nodes = 1;
  int n_ranks = 1;
  int n_pipe_ops = 1;
  Role role = Role::kUnknown;  // recognised
};

// An empty condition matches everything.
struct OverrideRule {
  int line = 0;
  Collective collective = Collective::kAllReduce;
  uint64_t min_bytes = 0;
  uint64_t max_bytes = 0;
  CollectiveConfig config;   // kLeaveNcclAlone: NCCL's choice, whatever the policy says
  uint64_t chunk_bytes = 0;  // for calls with that algorithm and protocol; 0: NCCL's
  std::optional<int> n_nodes;
  std::optional<int> n_ranks;
  std::optional<int> n_pipe_ops;
  std::optional<Role> role;

  bool Matches(const RuleSubject& subject) const;
};

// Bounds on a communicator's channels: minCTAs and maxCTAs of its ncclConfig_t. 0: not set.
struct CtaBounds {
  int least = 0;
  int most = 0;

  bool empty() const { return least == 0 && most == 0; }
  friend bool operator==(const CtaBounds&, const CtaBounds&) = default;
};

// What a communicator is initialised with. An empty condition matches everything.
struct CommunicatorRule {
  int line = 0;
  std::optional<int> n_nodes;
  std::optional<int> n_ranks;
  CtaBounds ctas;
};

// What a text of rules says.
struct ParsedRules {
  std::vector<OverrideRule> calls;
  std::vector<CommunicatorRule> communicators;
};

class OverrideRules {
 public:
  // `name` stands in errors, which name line and column. A name that ends in ".toml" means TOML, any other
  // the CSV.
  static Result<OverrideRules> Parse(std::string_view text, const std::string& name);
  static Result<OverrideRules> ReadFile(const std::string& path);

  // The first rule that matches, as in NCCL's example; null when none does. Owned by this object.
  const OverrideRule* Match(const RuleSubject& subject) const;

  // Likewise for a communicator that is to be initialised. `n_nodes` is 0 where nobody knows it yet: then no
  // rule for a number of nodes matches.
  const CommunicatorRule* MatchCommunicator(int n_ranks, int n_nodes) const;

  const std::vector<OverrideRule>& rules() const { return parsed_.calls; }
  bool any_about_communicators() const { return !parsed_.communicators.empty(); }
  bool any_chunk_bytes() const;
  // SHA-256 of the text: what ranks attest.
  const Sha256Digest& digest() const { return digest_; }

 private:
  ParsedRules parsed_;
  Sha256Digest digest_{};
};

// The two notations.
Result<std::vector<OverrideRule>> ParseCsvRules(std::string_view text, const std::string& name);
Result<ParsedRules> ParseTomlRules(std::string_view text, const std::string& name);

}  // namespace dynamiccl
