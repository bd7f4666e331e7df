// SPDX-License-Identifier: Apache-2.0
// Copies the choice that a search settled at one size to keys of nearby sizes, and of other roles, that were
// never called. When a batch or a bucket changes its size, or the job changes its ZeRO stage, the first calls
// of the new keys then use the settled choice instead of an untried one.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

// A choice is carried to sizes at most this many size classes (two octaves) larger or smaller. Farther away,
// a protocol for small messages is ruinous for large ones (docs/results/agents-scenarios.md).
inline constexpr int kCarriedClasses = 8;

// Returns entries for the size classes around each entry of `settled`, with the same collective and role, in
// the order of KeyCode. Each entry has the choice of the nearest settled size, and of the smaller one if two
// are equally near. Keys in `known` (KeyCodes, which include those of `settled`) have their own entries and
// get none.
std::vector<KeyPlan> CarriedChoices(std::span<const KeyPlan> settled, const std::set<uint32_t>& known);

// Returns entries for the other roles of each entry of `settled`, with the same collective and size class, in
// the order of KeyCode. If the settled roles of a size have different choices, the size gets no entry. Role
// scalar gets none either, because only the size makes a call a scalar. Keys in `known` get none.
std::vector<KeyPlan> CarriedToRoles(std::span<const KeyPlan> settled, const std::set<uint32_t>& known);

}  // namespace dynamiccl
