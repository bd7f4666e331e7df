// SPDX-License-Identifier: Apache-2.0
// Carries what a search settled at one size to sizes near it that were never called. When a batch or a bucket
// changes, its first calls then use what was best at the size before, instead of something that nobody has
// tried.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

// Size classes either way: two octaves. Farther away, a protocol for small messages is ruinous for large ones
// (docs/results/agents-scenarios.md).
inline constexpr int kCarriedClasses = 8;

// Returns entries for the size classes around each of `settled`, same collective and role, in the order of
// KeyCode. Each has the choice of the nearest settled size; of two that are equally near, the smaller one's.
// Keys in `known` (by KeyCode, those of `settled` included) have entries of their own and get none.
std::vector<KeyPlan> CarriedChoices(std::span<const KeyPlan> settled, const std::set<uint32_t>& known);

}  // namespace dynamiccl
