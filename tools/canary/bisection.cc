// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/bisection.h"

#include <algorithm>
#include <set>
#include <utility>

namespace dynamiccl {
namespace {

using real_nccl::NcclRelease;
using StateOfRelease = std::function<Result<FaultState>(const NcclRelease&)>;

// Returns the releases of `all` from `first` to `last`, both included, in order.
std::vector<NcclRelease> Between(const std::set<NcclRelease>& all, const NcclRelease& first,
                                 const NcclRelease& last) {
  return {all.lower_bound(first), all.upper_bound(last)};
}

// Narrows `range` to two neighbours, of which the first is in state `low` and the second is not. The first
// and the last release of the range are known to be like this. Releases that hide the fault leave the range
// and go to `hidden`.
Result<std::pair<NcclRelease, NcclRelease>> Halve(std::vector<NcclRelease> range, FaultState low,
                                                  const StateOfRelease& state,
                                                  std::vector<NcclRelease>* hidden) {
  size_t begin = 0, end = range.size() - 1;
  while (end - begin > 1) {
    const size_t middle = begin + (end - begin) / 2;
    DYNAMICCL_TRY(const FaultState its, state(range[middle]));
    if (its != FaultState::kHidden) {
      (its == low ? begin : end) = middle;
      continue;
    }
    hidden->push_back(range[middle]);
    range.erase(range.begin() + static_cast<std::ptrdiff_t>(middle));
    --end;
  }
  return std::pair(range[begin], range[end]);
}

// Looks for the end of the fault in `range`, which begins with a release that has it.
Status FindEnd(std::vector<NcclRelease> range, const StateOfRelease& state, Bisection* found) {
  for (; range.size() > 1; range.pop_back()) {
    DYNAMICCL_TRY(const FaultState newest, state(range.back()));
    if (newest == FaultState::kPresent) return {};
    if (newest == FaultState::kHidden) {
      found->hidden.push_back(range.back());
      continue;
    }
    DYNAMICCL_TRY(const auto neighbours, Halve(range, FaultState::kPresent, state, &found->hidden));
    found->last_with = neighbours.first;
    found->free_again = neighbours.second;
    return {};
  }
  return {};
}

// Adds the published releases that lie strictly between two releases, and did not run.
void AddGap(const NcclRelease& after, const NcclRelease& before, Bisection* found) {
  for (const NcclRelease& one : PublishedReleases()) {
    const bool ran = std::ranges::find(found->hidden, one) != found->hidden.end();
    if (one > after && one < before && !ran) found->not_looked_at.push_back(one);
  }
}

}  // namespace

Result<Bisection> BisectFault(const NcclRelease& without, const NcclRelease& with,
                              const std::vector<NcclRelease>& here, const StateOfRelease& state) {
  std::set<NcclRelease> all(here.begin(), here.end());
  all.insert({without, with});
  Bisection found;
  DYNAMICCL_TRY(const auto neighbours,
                Halve(Between(all, without, with), FaultState::kAbsent, state, &found.hidden));
  found.last_without = neighbours.first;
  found.first_with = neighbours.second;
  DYNAMICCL_CHECK_OK(FindEnd(Between(all, with, *all.rbegin()), state, &found));
  AddGap(found.last_without, found.first_with, &found);
  if (found.free_again) AddGap(*found.last_with, *found.free_again, &found);
  std::ranges::sort(found.hidden);
  return found;
}

const std::vector<NcclRelease>& PublishedReleases() {
  static const std::vector<NcclRelease> releases = {
      {2, 18, 1}, {2, 18, 3}, {2, 19, 3}, {2, 20, 5}, {2, 21, 5}, {2, 22, 3}, {2, 23, 4},
      {2, 24, 3}, {2, 25, 1}, {2, 26, 2}, {2, 26, 5}, {2, 27, 3}, {2, 27, 5}, {2, 27, 6},
      {2, 27, 7}, {2, 28, 3}, {2, 28, 7}, {2, 28, 9}, {2, 29, 2}, {2, 29, 3}, {2, 29, 7},
      {2, 30, 3}, {2, 30, 4}, {2, 30, 7}, {2, 31, 2}, {2, 32, 3}};
  return releases;
}

}  // namespace dynamiccl
