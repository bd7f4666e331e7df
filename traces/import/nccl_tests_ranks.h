// SPDX-License-Identifier: Apache-2.0
// The ranks that nccl-tests lists before its results. Private to the importers of its text and JSON.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dynamiccl {

// Ranks of a file must be smaller; a larger number means a damaged file.
inline constexpr int32_t kMostTestRanks = 1 << 20;

// Collects listed ranks by group. With NCCL_TESTS_SPLIT the ranks form groups that run at the same time, and
// the results are those of rank 0's group.
class ListedRanks {
 public:
  bool empty() const { return groups_.empty(); }

  // Adds a rank from 0 to kMostTestRanks - 1. Returns false if its group has it already.
  bool Add(int32_t group, int32_t rank, const std::string& host);

  // The communicator that the results are about, and notes on groups and on ranks that are not listed.
  struct Communicator {
    int32_t ranks = 0;
    int32_t nodes = 1;
    std::vector<std::string> notes;
  };
  // Returns the communicator of the results. At least one rank must have been added.
  Communicator Measured() const;

 private:
  struct Group {
    std::set<int32_t> ranks;
    std::set<std::string> hosts;
  };
  std::map<int32_t, Group> groups_;
};

}  // namespace dynamiccl
