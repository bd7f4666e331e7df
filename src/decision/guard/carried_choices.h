// SPDX-License-Identifier: Apache-2.0
// What a search settled at one size, for sizes near it that were never called: when a batch or a bucket
// changes, its first calls use what was best at the size before instead of what nobody has tried.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

// Two octaves either way. Farther, what suits small messages is ruinous for large ones
// (docs/results/agents-scenarios.md).
inline constexpr int kCarriedClasses = 8;

// Entries for the size classes around each of `settled`, same collective and role: the choice of the nearest
// one, of two that are equally near the smaller one's. None for keys in `known`, which have entries of their
// own (by KeyCode; those of `settled` are to be among them). In the order of KeyCode.
std::vector<KeyPlan> CarriedChoices(std::span<const KeyPlan> settled, const std::set<uint32_t>& known);

}  // namespace dynamiccl
