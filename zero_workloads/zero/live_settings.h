// SPDX-License-Identifier: Apache-2.0
// The settings of a run that may change while it runs.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

// What may change between two steps without changing a bit of the result where bucket sizes do not
// (docs/zero_trainer.md); equal on all ranks.
struct LiveSettings {
  int64_t bucket_bytes = 0;
  bool prefetch = true;

  friend bool operator==(const LiveSettings&, const LiveSettings&) = default;
};

}  // namespace dynamiccl::zero
