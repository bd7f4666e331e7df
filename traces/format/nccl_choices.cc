// SPDX-License-Identifier: Apache-2.0
// Defines equality, in which NaN equals NaN, and the order of releases.
#include "traces/format/nccl_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace dynamiccl {
namespace {

bool SameCost(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool SameCall(const NcclCall& a, const NcclCall& b) {
  return a.bytes == b.bytes && a.choice == b.choice && a.threads == b.threads &&
         std::ranges::equal(a.microseconds, b.microseconds, SameCost);
}

// Returns the three numbers of a release such as "2.28.9"; a number that is missing is 0.
std::array<int, 3> NumbersOf(const std::string& release) {
  std::array<int, 3> numbers{};
  std::sscanf(release.c_str(), "%d.%d.%d", &numbers[0], &numbers[1], &numbers[2]);
  return numbers;
}

}  // namespace

float NcclCalls::Cost(const NcclCall& call, NcclPair pair) const {
  const auto found = std::find(pairs.begin(), pairs.end(), pair);
  return found == pairs.end() ? std::numeric_limits<float>::quiet_NaN()
                              : call.microseconds[static_cast<size_t>(found - pairs.begin())];
}

bool operator==(const NcclCalls& a, const NcclCalls& b) {
  return a.pairs == b.pairs && std::ranges::equal(a.calls, b.calls, SameCall);
}

std::string NcclWorld::text() const {
  return fmt::format("{} {}x{}", machine, nodes, ranks_per_node);
}

std::vector<std::string> ReleasesInOrder(const NcclChoices& choices) {
  std::vector<std::string> names;
  for (const auto& [name, release] : choices.releases) names.push_back(name);
  std::ranges::sort(names, {}, NumbersOf);
  return names;
}

}  // namespace dynamiccl
