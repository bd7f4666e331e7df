// SPDX-License-Identifier: Apache-2.0
// Compares each rule with all before it. The number of comparisons grows with the square of the number of
// rules. The fields compared are those that a rule may restrict: collective, sizes, nodes, ranks, pipe
// operations, role, phase, stage and memory pressure.
#include "tools/doctor/unreachable_rules.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// True if the condition `wide` admits everything that `narrow` admits. A missing condition admits everything.
template <typename T>
bool Includes(const std::optional<T>& wide, const std::optional<T>& narrow) {
  return !wide || wide == narrow;
}

// True if `wide` matches every call that `narrow` matches.
bool TakesAllOf(const OverrideRule& wide, const OverrideRule& narrow) {
  return wide.collective == narrow.collective && wide.min_bytes <= narrow.min_bytes &&
         wide.max_bytes >= narrow.max_bytes && Includes(wide.n_nodes, narrow.n_nodes) &&
         Includes(wide.n_ranks, narrow.n_ranks) && Includes(wide.n_pipe_ops, narrow.n_pipe_ops) &&
         Includes(wide.role, narrow.role) && Includes(wide.phase, narrow.phase) &&
         Includes(wide.stage, narrow.stage) && Includes(wide.memory, narrow.memory);
}

}  // namespace

std::vector<UnreachableRule> UnreachableRules(const std::vector<OverrideRule>& rules) {
  std::vector<UnreachableRule> unreachable;
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto end = rules.begin() + static_cast<std::ptrdiff_t>(i);
    const auto first = std::find_if(rules.begin(), end,
                                    [&](const OverrideRule& rule) { return TakesAllOf(rule, rules[i]); });
    if (first != end) unreachable.push_back({rules[i].line, first->line});
  }
  return unreachable;
}

}  // namespace dynamiccl
