// SPDX-License-Identifier: Apache-2.0
// The options of a training run that concern checkpoints.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/status.h"

namespace dynamiccl::zero {

// Holds the settings as parsed from the command line or the settings file. They are equal on all ranks.
struct CheckpointSettings {
  // Value of --checkpoint-dir. Empty means that the run has no checkpoints.
  std::string directory;
  // Number of optimizer steps between saves. 0 means one save, after the last step.
  int64_t every = 0;
  // Number of the newest checkpoints that are kept.
  int64_t keep = 3;
  // If true, a thread writes the checkpoint while training continues.
  bool async = false;
  // "latest" or a number of steps. Empty means that the run starts from the beginning.
  std::string resume;

  // The settings that must be equal on all ranks, as text.
  std::string Canonical() const;
};

// Returns an error for values out of range, and for options that contradict each other.
Status Validate(const CheckpointSettings& settings);

}  // namespace dynamiccl::zero
