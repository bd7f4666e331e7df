// SPDX-License-Identifier: Apache-2.0
// Ranks may be missing in the list: every rank of the job has a line, numbered from 0.
#include "traces/import/nccl_tests_ranks.h"

#include <fmt/format.h>

#include <algorithm>

namespace dynamiccl {

bool ListedRanks::Add(int32_t group, int32_t rank, const std::string& host) {
  Group& listed = groups_[group];
  if (!host.empty()) listed.hosts.insert(host);
  return listed.ranks.insert(rank).second;
}

ListedRanks::Communicator ListedRanks::Measured() const {
  int32_t highest = -1;
  size_t listed = 0;
  const Group* first = &groups_.begin()->second;
  for (const auto& [number, group] : groups_) {
    highest = std::max(highest, *group.ranks.rbegin());
    listed += group.ranks.size();
    if (*group.ranks.begin() < *first->ranks.begin()) first = &group;
  }
  const auto missing = highest + 1 - static_cast<int32_t>(listed);
  Communicator communicator;
  communicator.ranks = static_cast<int32_t>(first->ranks.size());
  communicator.nodes = std::max<int32_t>(1, static_cast<int32_t>(first->hosts.size()));
  if (groups_.size() > 1)
    communicator.notes.push_back(
        fmt::format("tables of groups of ranks that ran at the same time ({}): kept, as times of {} ranks",
                    groups_.size(), communicator.ranks));
  else if (missing > 0)
    communicator.ranks = highest + 1;
  if (missing > 0)
    communicator.notes.push_back(
        fmt::format("tables without the lines of {} of {} ranks: kept, though nodes may be missing", missing,
                    highest + 1));
  return communicator;
}

}  // namespace dynamiccl
