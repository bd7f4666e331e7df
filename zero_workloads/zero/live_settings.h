// SPDX-License-Identifier: Apache-2.0
// The settings of a run that may change while it runs.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

// Holds the settings that may change between two steps. Except for the bucket size, changing them does not
// change a bit of the result (docs/zero_trainer.md). They are equal on all ranks.
struct LiveSettings {
  int64_t bucket_bytes = 0;
  // The number of units that stage 3 gathers ahead of the unit that computes; 0 means none.
  int64_t units_ahead = 1;

  friend bool operator==(const LiveSettings&, const LiveSettings&) = default;
};

}  // namespace dynamiccl::zero
