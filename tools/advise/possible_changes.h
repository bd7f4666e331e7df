// SPDX-License-Identifier: Apache-2.0
// Changes of the framework's settings that a user can make to a job without DynamICCL. Each change is given
// as the changed job, with its cost and how to set it.
#pragma once

#include <string>
#include <vector>

#include "tools/advise/advised_job.h"

namespace dynamiccl {

// One change of one setting.
struct PossibleChange {
  // The change as text, for example "bucket_bytes 4M -> 16M".
  std::string what;
  // The job with the change.
  AdvisedJob job;
  // Says how the user makes the change in the framework.
  std::string how;
  // Holds what the change does to the numbers, or what it requires of the program, as text; empty: nothing.
  std::string remark;
  // Bytes of memory that a rank needs in addition (negative: less), by the formulas of `dynamiccl zero
  // estimate`.
  double memory_bytes;
};

// Where the job's tensors are.
enum class TensorsOn { kGpus, kCpus };

// Returns every change of one setting that the framework accepts on this device and that makes a difference.
// A change to hybrid sharding divides the model over groups of `ranks_per_node` ranks.
std::vector<PossibleChange> PossibleChanges(const AdvisedJob& job, int ranks_per_node,
                                            TensorsOn device = TensorsOn::kGpus);

// Bytes on a rank of the model's states, two gradient buckets and the gathered parameters, without
// activations.
double MemoryOf(const AdvisedJob& job);

}  // namespace dynamiccl
