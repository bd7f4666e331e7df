// SPDX-License-Identifier: Apache-2.0
// Copies what a search settled at one size to nearby sizes, and to other roles, that were never called. When
// a batch or a bucket changes its size, or the job its ZeRO stage, the first calls then use what was best
// before, and not something untried.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

// Reach in size classes, up and down: two octaves. Farther away, a protocol for small messages is ruinous for
// large ones (docs/results/agents-scenarios.md).
inline constexpr int kCarriedClasses = 8;

// Returns entries for the size classes around each entry of `settled`, with the same collective and role, in
// the order of KeyCode. Each entry has the choice of the nearest settled size, and of the smaller one if two
// are equally near. Keys in `known` (KeyCodes, which include those of `settled`) have their own entries and
// get none.
std::vector<KeyPlan> CarriedChoices(std::span<const KeyPlan> settled, const std::set<uint32_t>& known);

// Returns entries for the other roles of each entry of `settled`, with the same collective and size class, in
// the order of KeyCode. Where roles that were settled have different choices, the size gets none. Scalars are
// left out, because only their size makes them scalars. Keys in `known` get none.
std::vector<KeyPlan> CarriedToRoles(std::span<const KeyPlan> settled, const std::set<uint32_t>& known);

}  // namespace dynamiccl
