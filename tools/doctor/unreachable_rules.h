// SPDX-License-Identifier: Apache-2.0
// Rules that no call can reach, because one before them takes all of theirs.
#pragma once

#include <vector>

#include "src/decision/override_rules.h"

namespace dynamiccl {

struct UnreachableRule {
  int line = 0;
  int taken_by_line = 0;
};

// In the file's order. A rule that only several others together cover is not found.
std::vector<UnreachableRule> UnreachableRules(const std::vector<OverrideRule>& rules);

}  // namespace dynamiccl
