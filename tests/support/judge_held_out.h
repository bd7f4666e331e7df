// SPDX-License-Identifier: Apache-2.0
// Judges choosers with the split of the keys that a HoldOut defines.
#pragma once

#include <vector>

#include "agents/evaluation/regret.h"

namespace dynamiccl::agents {

inline std::vector<RegretSummary> JudgeHeldOut(const std::vector<SweptKey>& keys, const HoldOut& hold_out,
                                               const std::vector<Chooser>& choosers) {
  return JudgeChoosers([&](const SweptKey& key) { return SplitOf(key, hold_out); }, keys, choosers);
}

}  // namespace dynamiccl::agents
