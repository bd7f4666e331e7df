// SPDX-License-Identifier: Apache-2.0
// What a training run is told of checkpoints.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/status.h"

namespace dynamiccl::zero {

struct CheckpointSettings {
  std::string directory;  // empty: no checkpoints
  int64_t every = 0;      // steps between saves; 0: only after the last step
  int64_t keep = 3;       // newest checkpoints that stay
  bool async = false;     // written by a thread while training goes on
  std::string resume;     // "latest" or a number of steps; empty: start anew

  // What must be equal on all ranks.
  std::string Canonical() const;
};

// Options that make no sense together, or values that make none.
Status Validate(const CheckpointSettings& settings);

}  // namespace dynamiccl::zero
