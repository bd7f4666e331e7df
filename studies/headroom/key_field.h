// SPDX-License-Identifier: Apache-2.0
// What a field of the decision key is worth: cells that differ in this field alone are answered once together
// and once apart. Picked on one half of the repeats, timed on the other, both ways round.
#pragma once

#include <string>
#include <vector>

#include "studies/headroom/timed_arms.h"

namespace dynamiccl {

// kRegime: sweeps whose stated fabric is the same, so that nothing but a regime could tell them apart
// (emulated links that are congested, loaded or degraded without the fabric saying so).
enum class KeyField { kCollective, kSize, kRanks, kFabric, kRegime };
inline constexpr KeyField kKeyFields[] = {KeyField::kCollective, KeyField::kSize, KeyField::kRanks,
                                          KeyField::kFabric, KeyField::kRegime};
const char* Name(KeyField field);

// Cells equal in all but one field, with the arms that all of them have.
struct FieldGroup {
  std::vector<const ArmCell*> cells;
  std::vector<std::string> arms;
};
// Groups of at least two cells that differ in the field. `cells` must outlive them.
std::vector<FieldGroup> GroupsBy(KeyField field, const std::vector<ArmCell>& cells);

struct FieldWorth {
  size_t groups = 0;
  double naive_conflicts = 0;  // share of groups where not all cells have the same best arm
  double clear_conflicts = 0;  // share where telling apart gains at least three times the noise
  double gain = 0;             // octaves, mean over groups: together against apart
  double clear_gain = 0;       // mean gain of the clear ones; 0 without any
  double noise = 0;            // median over groups
  double together = 0;         // mean gain of one answer over the default
  double apart = 0;            // of an answer each
};
FieldWorth WorthOf(const std::vector<FieldGroup>& groups);

// For kRegime: the first topology of each fabric, in the order of the cells, beside each other one.
struct RegimePair {
  std::string normal;
  std::string other;
  FieldWorth worth;
};
std::vector<RegimePair> RegimePairs(const std::vector<ArmCell>& cells);

}  // namespace dynamiccl
