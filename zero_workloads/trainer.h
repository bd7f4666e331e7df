// SPDX-License-Identifier: Apache-2.0
// One rank's training run, from reading its rank in the environment to the last report.
#pragma once

#include "src/base/status.h"
#include "zero_workloads/training_settings.h"

namespace dynamiccl::zero {

// Runs the training that `settings` describe and returns when it is complete. Every rank of the run calls it
// in a process of its own. The error kPeerFailed means that a collective failed. The communicators have then
// been aborted, so that no thread waits any longer.
Status Train(const TrainingSettings& settings);

}  // namespace dynamiccl::zero
