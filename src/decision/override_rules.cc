// SPDX-License-Identifier: Apache-2.0
// Rules are few, so matching tries all of them in the order of the file.
#include "src/decision/override_rules.h"

#include <algorithm>

#include "src/base/whole_file.h"

namespace dynamiccl {
namespace {

// The most bytes of a file: many times what a person writes.
constexpr size_t kMaxBytes = 1 << 20;

// True if the condition is empty or equals the value.
template <typename Value>
bool Holds(const std::optional<Value>& condition, Value value) {
  return !condition || *condition == value;
}

}  // namespace

bool OverrideRule::Matches(const RuleSubject& subject) const {
  return collective == subject.collective && subject.bytes >= min_bytes && subject.bytes <= max_bytes &&
         Holds(n_nodes, subject.n_nodes) && Holds(n_ranks, subject.n_ranks) &&
         Holds(n_pipe_ops, subject.n_pipe_ops) && Holds(role, subject.role) && Holds(phase, subject.phase) &&
         Holds(stage, subject.stage) && Holds(memory, subject.memory);
}

// True if the rule has a condition on role, phase or stage. A condition on "unknown" is not counted: it holds
// without a policy.
bool OverrideRule::needs_recognition() const {
  return role.value_or(Role::kUnknown) != Role::kUnknown ||
         phase.value_or(Phase::kUnknown) != Phase::kUnknown ||
         stage.value_or(ZeroStage::kUnknown) != ZeroStage::kUnknown;
}

bool OverrideRule::needs_memory() const {
  return memory.value_or(MemoryPressure::kUnknown) != MemoryPressure::kUnknown;
}

std::string NamesOfRoles() {
  std::string names;
  for (int i = 0; i < kRoles; ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", Name(static_cast<Role>(i)));
  return names;
}

Result<OverrideRules> OverrideRules::Parse(std::string_view text, const std::string& name) {
  OverrideRules rules;
  rules.digest_ = Sha256Of(std::as_bytes(std::span(text)));
  if (name.ends_with(".toml")) {
    DYNAMICCL_TRY(rules.parsed_, ParseTomlRules(text, name));
  } else {
    DYNAMICCL_TRY(rules.parsed_.calls, ParseCsvRules(text, name));
  }
  return rules;
}

Result<OverrideRules> OverrideRules::ReadFile(const std::string& path) {
  DYNAMICCL_TRY(const std::string text, ReadSmallFile(path, kMaxBytes));
  return Parse(text, path);
}

bool OverrideRules::any_chunk_bytes() const {
  return std::any_of(rules().begin(), rules().end(),
                     [](const OverrideRule& rule) { return rule.chunk_bytes; });
}

bool OverrideRules::any_needs_recognition() const {
  return std::any_of(rules().begin(), rules().end(),
                     [](const OverrideRule& rule) { return rule.needs_recognition(); });
}

bool OverrideRules::any_needs_memory() const {
  return std::any_of(rules().begin(), rules().end(),
                     [](const OverrideRule& rule) { return rule.needs_memory(); });
}

const OverrideRule* OverrideRules::Match(const RuleSubject& subject) const {
  for (const OverrideRule& rule : rules()) {
    if (rule.Matches(subject)) return &rule;
  }
  return nullptr;
}

const CommunicatorRule* OverrideRules::MatchCommunicator(int n_ranks, int n_nodes) const {
  for (const CommunicatorRule& rule : parsed_.communicators) {
    if (Holds(rule.n_ranks, n_ranks) && Holds(rule.n_nodes, n_nodes)) return &rule;
  }
  return nullptr;
}

}  // namespace dynamiccl
