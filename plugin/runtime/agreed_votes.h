// SPDX-License-Identifier: Apache-2.0
// The votes that ended with a yes. The leader has sent this verdict to all ranks of each vote. The votes are
// remembered for the rest of the job, because a rank whose connection broke may ask again at any time. A
// leader has some hundred votes for each communicator, at 16 bytes each.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "src/decision/control_messages.h"

namespace dynamiccl {

// Owned by the control server, used on its thread alone.
class AgreedVotes {
 public:
  void Add(const ControlToken& vote) {
    recent_.insert(vote);
    if (recent_.size() < kRecent) return;
    const auto before = static_cast<std::ptrdiff_t>(votes_.size());
    votes_.insert(votes_.end(), recent_.begin(), recent_.end());
    std::inplace_merge(votes_.begin(), votes_.begin() + before, votes_.end());
    recent_.clear();
  }
  bool Contains(const ControlToken& vote) const {
    return recent_.contains(vote) || std::binary_search(votes_.begin(), votes_.end(), vote);
  }

 private:
  // Votes move from the set to the vector when the set holds this many. A set needs 64 bytes for each vote, a
  // sorted vector 16.
  static constexpr size_t kRecent = 256;

  std::set<ControlToken> recent_;
  std::vector<ControlToken> votes_;  // in order
};

}  // namespace dynamiccl
