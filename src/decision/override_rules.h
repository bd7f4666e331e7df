// SPDX-License-Identifier: Apache-2.0
// Override rules: choices that a user writes down, in the CSV of NCCL's example tuner or in TOML. They win
// over the policy. Grammar: docs/formats/override_rules.md.
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

// A call as rules see it. All values are equal on all ranks.
struct RuleSubject {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total
  int n_nodes = 1;
  int n_ranks = 1;
  int n_pipe_ops = 1;
  // The policy's LSTM recognised the following three members; DecisionKey says when they are unknown.
  Role role = Role::kUnknown;
  Phase phase = Phase::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;
  // The level on which the ranks agreed (docs/formats/override_rules.md).
  MemoryPressure memory = MemoryPressure::kUnknown;
};

// One rule about calls. An empty condition matches everything.
struct OverrideRule {
  // Line of the rule in its file, for messages.
  int line = 0;
  Collective collective = Collective::kAllReduce;
  // The range of bytes includes both bounds.
  uint64_t min_bytes = 0;
  uint64_t max_bytes = 0;
  // The config that matching calls use. kLeaveNcclAlone: NCCL chooses, whatever the policy says.
  CollectiveConfig config;
  // Chunk size in bytes for calls with that algorithm and protocol; 0: NCCL chooses.
  uint64_t chunk_bytes = 0;
  std::optional<int> n_nodes;
  std::optional<int> n_ranks;
  std::optional<int> n_pipe_ops;
  // Conditions on what the policy's LSTM recognises.
  std::optional<Role> role;
  std::optional<Phase> phase;
  std::optional<ZeroStage> stage;
  std::optional<MemoryPressure> memory;

  bool Matches(const RuleSubject& subject) const;
  // True if a condition needs a policy to hold.
  bool needs_recognition() const;
  // True if a condition holds only at an agreed level of memory pressure.
  bool needs_memory() const;
};

// Bounds on a communicator's channels: minCTAs and maxCTAs of its ncclConfig_t. 0: not set.
struct CtaBounds {
  int least = 0;
  int most = 0;

  bool empty() const { return least == 0 && most == 0; }
  friend bool operator==(const CtaBounds&, const CtaBounds&) = default;
};

// One rule about how a communicator is initialised. An empty condition matches everything.
struct CommunicatorRule {
  int line = 0;
  std::optional<int> n_nodes;
  std::optional<int> n_ranks;
  CtaBounds ctas;
};

// All rules of a file, in its order.
struct ParsedRules {
  std::vector<OverrideRule> calls;
  std::vector<CommunicatorRule> communicators;
};

// The rules of one file. Immutable after parsing, so any thread may use it. The ranks attest the digest of
// its text.
class OverrideRules {
 public:
  // Reads rules from `text`. `name` is used in errors, which give line and column. If `name` ends in ".toml",
  // the text is TOML, otherwise CSV. One wrong rule makes the whole text an error.
  static Result<OverrideRules> Parse(std::string_view text, const std::string& name);
  // Reads and parses a file of at most 1 MiB.
  static Result<OverrideRules> ReadFile(const std::string& path);

  // Returns the first rule that matches, like NCCL's example tuner; null if none does. This object owns the
  // rule.
  const OverrideRule* Match(const RuleSubject& subject) const;

  // Returns the first rule for a communicator that is to be initialised. `n_nodes` is 0 if it is not known
  // yet; then no rule with a number of nodes matches.
  const CommunicatorRule* MatchCommunicator(int n_ranks, int n_nodes) const;

  const std::vector<OverrideRule>& rules() const { return parsed_.calls; }
  bool any_about_communicators() const { return !parsed_.communicators.empty(); }
  bool any_chunk_bytes() const;
  // True if some rule can only match with a policy.
  bool any_needs_recognition() const;
  // True if some rule can only match at an agreed level of memory pressure.
  bool any_needs_memory() const;
  // SHA-256 of the rules' text. The ranks attest that it is equal on all of them.
  const Sha256Digest& digest() const { return digest_; }

 private:
  ParsedRules parsed_;
  Sha256Digest digest_{};
};

// The names of all roles, separated by commas, for errors.
std::string NamesOfRoles();

// These parse the two notations, CSV and TOML. `name` is used in errors.
Result<std::vector<OverrideRule>> ParseCsvRules(std::string_view text, const std::string& name);
Result<ParsedRules> ParseTomlRules(std::string_view text, const std::string& name);

}  // namespace dynamiccl
