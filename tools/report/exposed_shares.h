// SPDX-License-Identifier: Apache-2.0
// Finds out for how much of its collectives' time a recorded job waited.
#pragma once

#include <compare>
#include <map>
#include <optional>

#include "traces/format/trace_calls.h"

namespace dynamiccl {

// The shares that the guards of a job found for their keys, averaged over the roles of a key.
class ExposedShares {
 public:
  explicit ExposedShares(const SectionCalls& section);

  // The part of the call's time for which the program waited, from 0 to 1. Nothing where no guard measured
  // it.
  std::optional<double> Of(const TraceCall& call) const;

 private:
  // The key under which the guard recorded the exposed share of calls.
  struct Key {
    uint32_t communicator = 0;
    Collective collective = Collective::kAllReduce;
    uint64_t least_bytes = 0;  // smallest size of the size class
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  std::map<Key, double> shares_;
};

}  // namespace dynamiccl
