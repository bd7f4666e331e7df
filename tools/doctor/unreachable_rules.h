// SPDX-License-Identifier: Apache-2.0
// Finds rules that no call can reach, because an earlier rule matches all of their calls.
#pragma once

#include <vector>

#include "src/decision/override_rules.h"

namespace dynamiccl {

// Line numbers of the rule and of the earlier rule that hides it.
struct UnreachableRule {
  int line = 0;
  int taken_by_line = 0;
};

// In the file's order. A rule that is covered only by several others together is not found.
std::vector<UnreachableRule> UnreachableRules(const std::vector<OverrideRule>& rules);

}  // namespace dynamiccl
