// SPDX-License-Identifier: Apache-2.0
// Reads from a recorded job for what share of its collectives' time the program waited (the exposed share).
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <vector>

#include "traces/format/trace_calls.h"

namespace dynamiccl {

// The exposed shares that a job's guards measured for their keys. If a key has several roles, their mean
// counts.
class ExposedShares {
 public:
  explicit ExposedShares(const std::vector<WaitedShareView>& waited_shares);

  // The part of the call's time for which the program waited, from 0 to 1. Nothing if no guard measured it.
  std::optional<double> Of(const TraceCall& call) const;

 private:
  // The key by which the guard records the exposed share of calls: for what part of their time the program
  // waits.
  struct Key {
    uint32_t communicator = 0;
    Collective collective = Collective::kAllReduce;
    uint64_t least_bytes = 0;  // smallest size of the size class
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  std::map<Key, double> shares_;
};

}  // namespace dynamiccl
