// SPDX-License-Identifier: Apache-2.0
// The meetings that ended with a yes which was sent to all of their ranks. They are remembered for the rest
// of the job, because a rank whose connection broke may ask again at any time. A leader has some hundred
// meetings for each communicator, at 16 bytes each.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "src/decision/control_messages.h"

namespace dynamiccl {

// Owned by the control server, used on its thread alone.
class AgreedMeetings {
 public:
  void Add(const ControlToken& meeting) {
    recent_.insert(meeting);
    if (recent_.size() < kRecent) return;
    const auto before = static_cast<std::ptrdiff_t>(meetings_.size());
    meetings_.insert(meetings_.end(), recent_.begin(), recent_.end());
    std::inplace_merge(meetings_.begin(), meetings_.begin() + before, meetings_.end());
    recent_.clear();
  }
  bool Contains(const ControlToken& meeting) const {
    return recent_.contains(meeting) || std::binary_search(meetings_.begin(), meetings_.end(), meeting);
  }

 private:
  // A set needs 64 bytes for each meeting, a sorted vector 16. So meetings move from the set to the vector,
  // 256 at a time.
  static constexpr size_t kRecent = 256;

  std::set<ControlToken> recent_;
  std::vector<ControlToken> meetings_;  // in order
};

}  // namespace dynamiccl
