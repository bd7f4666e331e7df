// SPDX-License-Identifier: Apache-2.0
// Groups cells by everything but one field and compares common with separate answers.
#include "studies/headroom/key_field.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/statistics.h"
#include "studies/headroom/headroom.h"

namespace dynamiccl {
namespace {

// Sweeps of one topology with different rank counts have names that differ in a suffix such as "-8r".
std::string WithoutRanks(const std::string& topology) {
  const size_t dash = topology.rfind('-');
  if (dash == std::string::npos || dash + 2 >= topology.size() || topology.back() != 'r') return topology;
  const bool digits = std::all_of(topology.begin() + static_cast<std::ptrdiff_t>(dash) + 1,
                                  topology.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
  return digits ? topology.substr(0, dash) : topology;
}

// Whether two cells may differ only in the field.
bool SameButFor(KeyField field, const ArmCell& a, const ArmCell& b) {
  const bool collective = a.collective == b.collective, size = a.bytes == b.bytes;
  const bool ranks = a.n_ranks == b.n_ranks && a.n_nodes == b.n_nodes, system = a.system == b.system;
  switch (field) {
    case KeyField::kCollective:
      return size && ranks && system;
    case KeyField::kSize:
      return collective && ranks && system;
    case KeyField::kRanks:
      return collective && size && WithoutRanks(a.system) == WithoutRanks(b.system);
    case KeyField::kFabric:
      return collective && size && ranks && a.model.has_value() && b.model.has_value();
    case KeyField::kRegime:
      return collective && size && a.model.has_value() && a.model == b.model;
  }
  return false;
}

bool Differs(KeyField field, const ArmCell& a, const ArmCell& b) {
  if (field == KeyField::kFabric) return !(a.model == b.model);
  return true;
}

// Names of the arms that every cell has.
std::vector<std::string> CommonArms(const std::vector<const ArmCell*>& cells) {
  std::vector<std::string> names;
  for (const auto& arm : cells.front()->arms) {
    if (std::all_of(cells.begin(), cells.end(),
                    [&](const ArmCell* c) { return c->arms.contains(arm.first); }))
      names.push_back(arm.first);
  }
  return names;
}

double LogTime(const ArmCell& cell, const std::string& arm, int half) {
  return std::log2(cell.arms.at(arm).halves[half]);
}

// The arm with the least mean logarithm of time over `cells`, on one half.
const std::string& BestArm(const FieldGroup& group, const std::vector<const ArmCell*>& cells, int half) {
  const std::string* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& arm : group.arms) {
    double sum = 0;
    for (const ArmCell* cell : cells) sum += LogTime(*cell, arm, half);
    if (sum >= least) continue;
    least = sum;
    best = &arm;
  }
  return *best;
}

// The FieldWorth of one group.
struct GroupWorth {
  // Octaves by which the common answer (`together`) or separate answers (`apart`) are faster than the
  // default.
  double together = 0;
  double apart = 0;
  double noise = 0;
  bool naive_conflict = false;

  double gain() const { return apart - together; }
  bool clear() const { return gain() > 0 && gain() >= CellHeadroom::kClear * noise; }
};

GroupWorth WorthOf(const FieldGroup& group) {
  GroupWorth worth;
  const double share = 1 / (2 * static_cast<double>(group.cells.size()));
  for (int half = 0; half < 2; ++half) {
    const std::string& shared = BestArm(group, group.cells, half);
    const std::string& first = BestArm(group, {group.cells.front()}, half);
    for (const ArmCell* cell : group.cells) {
      const std::string& own = BestArm(group, {cell}, half);
      const double usual = LogTime(*cell, kDefaultArm, 1 - half);
      worth.together += share * (usual - LogTime(*cell, shared, 1 - half));
      worth.apart += share * (usual - LogTime(*cell, own, 1 - half));
      worth.naive_conflict = worth.naive_conflict || own != first;
    }
  }
  double squares = 0;
  for (const ArmCell* cell : group.cells) squares += cell->Noise() * cell->Noise();
  worth.noise = std::sqrt(squares / static_cast<double>(group.cells.size()));
  return worth;
}

}  // namespace

const char* Name(KeyField field) {
  constexpr const char* kNames[] = {"collective", "size", "ranks", "fabric", "regime"};
  return kNames[static_cast<size_t>(field)];
}

std::vector<FieldGroup> GroupsBy(KeyField field, const std::vector<ArmCell>& cells) {
  std::vector<FieldGroup> groups;
  for (const ArmCell& cell : cells) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const FieldGroup& g) {
      return SameButFor(field, *g.cells.front(), cell);
    });
    if (group == groups.end())
      groups.push_back({{&cell}, {}});
    else
      group->cells.push_back(&cell);
  }
  std::erase_if(groups, [&](const FieldGroup& group) {
    return std::none_of(group.cells.begin() + 1, group.cells.end(),
                        [&](const ArmCell* c) { return Differs(field, *group.cells.front(), *c); });
  });
  for (FieldGroup& group : groups) group.arms = CommonArms(group.cells);
  return groups;
}

FieldWorth WorthOf(const std::vector<FieldGroup>& groups) {
  FieldWorth worth;
  worth.groups = groups.size();
  if (groups.empty()) return worth;
  const double share = 1 / static_cast<double>(groups.size());
  std::vector<double> noises;
  double clear_sum = 0;
  for (const FieldGroup& group : groups) {
    const GroupWorth one = WorthOf(group);
    worth.together += share * one.together;
    worth.apart += share * one.apart;
    worth.naive_conflicts += share * one.naive_conflict;
    worth.clear_conflicts += share * one.clear();
    if (one.clear()) clear_sum += one.gain();
    noises.push_back(one.noise);
  }
  worth.gain = worth.apart - worth.together;
  if (worth.clear_conflicts > 0) worth.clear_gain = clear_sum * share / worth.clear_conflicts;
  worth.noise = MedianInPlace(noises);
  return worth;
}

std::vector<RegimePair> RegimePairs(const std::vector<ArmCell>& cells) {
  std::vector<std::pair<std::string, std::string>> names;
  std::vector<std::vector<FieldGroup>> groups;
  for (const FieldGroup& all : GroupsBy(KeyField::kRegime, cells)) {
    for (size_t i = 1; i < all.cells.size(); ++i) {
      FieldGroup pair{{all.cells.front(), all.cells[i]}, {}};
      pair.arms = CommonArms(pair.cells);
      const std::pair<std::string, std::string> name{pair.cells[0]->system, pair.cells[1]->system};
      const auto known = std::find(names.begin(), names.end(), name);
      const auto place = static_cast<size_t>(known - names.begin());
      if (place == names.size()) {
        names.push_back(name);
        groups.emplace_back();
      }
      groups[place].push_back(std::move(pair));
    }
  }
  std::vector<RegimePair> pairs;
  for (size_t i = 0; i < names.size(); ++i)
    pairs.push_back({names[i].first, names[i].second, WorthOf(groups[i])});
  return pairs;
}

}  // namespace dynamiccl
