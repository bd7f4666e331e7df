// SPDX-License-Identifier: Apache-2.0
// Each settled key offers its choice to all size classes within kCarriedClasses. A size class that receives
// several offers keeps the one from the nearest size class.
#include "src/decision/guard/carried_choices.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

namespace dynamiccl {

std::vector<KeyPlan> CarriedChoices(std::span<const KeyPlan> settled, const std::set<uint32_t>& known) {
  struct Carried {
    KeyPlan entry;
    int classes = 0;  // distance, in size classes, from the settled one
  };
  std::map<uint32_t, Carried> nearest;
  for (const KeyPlan& from : settled) {
    for (int classes = -kCarriedClasses; classes <= kCarriedClasses; ++classes) {
      const int to = from.key.size_class.index + classes;
      if (to < 0 || to >= kSizeClasses) continue;
      KeyPlan entry{from.key, from.choice, {}};
      entry.key.size_class.index = static_cast<uint8_t>(to);
      const uint32_t code = KeyCode(entry.key);
      if (known.contains(code)) continue;
      // If two settled keys are equally near, the choice of the smaller size wins. `by` is the distance in
      // size classes, below 0 if the settled size is the larger one.
      const auto rank = [](int by) { return 2 * std::abs(by) + (by < 0 ? 1 : 0); };
      const auto other = nearest.find(code);
      if (other == nearest.end() || rank(classes) < rank(other->second.classes))
        nearest.insert_or_assign(code, Carried{std::move(entry), classes});
    }
  }
  std::vector<KeyPlan> carried;
  for (auto& [code, each] : nearest) carried.push_back(std::move(each.entry));
  return carried;
}

std::vector<KeyPlan> CarriedToRoles(std::span<const KeyPlan> settled, const std::set<uint32_t>& known) {
  std::map<uint32_t, std::optional<KeyPlan>> carried;  // nothing: the settled roles differ
  for (const KeyPlan& from : settled) {
    for (int role = 0; role < kRoles; ++role) {
      KeyPlan entry{from.key, from.choice, {}};
      entry.key.role = static_cast<Role>(role);
      const uint32_t code = KeyCode(entry.key);
      if (entry.key.role == Role::kScalar || known.contains(code)) continue;
      const auto [other, is_first] = carried.try_emplace(code, entry);
      if (!is_first && other->second && other->second->choice != entry.choice) other->second.reset();
    }
  }
  std::vector<KeyPlan> entries;
  for (auto& [code, entry] : carried)
    if (entry) entries.push_back(std::move(*entry));
  return entries;
}

}  // namespace dynamiccl
