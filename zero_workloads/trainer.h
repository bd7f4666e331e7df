// SPDX-License-Identifier: Apache-2.0
// A training run of this rank, from the environment's rank to the last report.
#pragma once

#include "src/base/status.h"
#include "zero_workloads/training_settings.h"

namespace dynamiccl::zero {

// kPeerFailed where a collective failed: the communicator is aborted then, and no thread waits any more.
Status Train(const TrainingSettings& settings);

}  // namespace dynamiccl::zero
