// SPDX-License-Identifier: Apache-2.0
// What a field of the decision key is worth. Cells that differ only in this field first get one common
// answer, and then an answer for each cell. Answers are picked on one half of the repeats and timed on the
// other, and then the other way round.
#pragma once

#include <string>
#include <vector>

#include "studies/headroom/timed_arms.h"

namespace dynamiccl {

// kRegime compares sweeps with the same stated fabric, so that only a regime can distinguish them. These are
// emulated links that are congested, loaded or degraded, which the fabric does not state.
enum class KeyField { kCollective, kSize, kRanks, kFabric, kRegime };
inline constexpr KeyField kKeyFields[] = {KeyField::kCollective, KeyField::kSize, KeyField::kRanks,
                                          KeyField::kFabric, KeyField::kRegime};
const char* Name(KeyField field);

// Cells that are equal in all but one field, with the arms that all of them have.
struct FieldGroup {
  std::vector<const ArmCell*> cells;
  std::vector<std::string> arms;
};
// Groups of at least two cells that differ in the field. `cells` must outlive them.
std::vector<FieldGroup> GroupsBy(KeyField field, const std::vector<ArmCell>& cells);

// Means over groups, in octaves unless stated otherwise.
struct FieldWorth {
  size_t groups = 0;
  // Share of groups whose cells do not all have the same best arm.
  double naive_conflicts = 0;
  // Share of groups in which separate answers gain at least three times the noise.
  double clear_conflicts = 0;
  // Gain of separate answers over the common one.
  double gain = 0;
  // Mean gain of the clear conflicts; 0 without any.
  double clear_gain = 0;
  // Median over groups.
  double noise = 0;
  // Gain of the common answer over the default.
  double together = 0;
  // Gain of separate answers over the default.
  double apart = 0;
};
FieldWorth WorthOf(const std::vector<FieldGroup>& groups);

// Two topologies with the same stated fabric: the first in the order of the cells, and another one.
struct RegimePair {
  std::string normal;
  std::string other;
  FieldWorth worth;
};
// For kRegime: each pair of topologies and what distinguishing them is worth.
std::vector<RegimePair> RegimePairs(const std::vector<ArmCell>& cells);

}  // namespace dynamiccl
