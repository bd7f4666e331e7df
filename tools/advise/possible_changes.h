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
  // For example "bucket_bytes 4M -> 16M".
  std::string what;
  // The job with the change.
  AdvisedJob job;
  // How the user makes the change in the framework.
  std::string how;
  // Effect on numbers or on the program; empty: none.
  std::string remark;
  // Additional memory of a rank in bytes (negative: less), by the formulas of `zero estimate`.
  double memory_bytes;
};

// Returns every change of one setting that the framework accepts and that makes a difference. Hybrid sharding
// would divide over groups of `ranks_per_node` ranks.
std::vector<PossibleChange> PossibleChanges(const AdvisedJob& job, int ranks_per_node);

// Bytes of states, two buckets and gathered units on a rank, without activations.
double MemoryOf(const AdvisedJob& job);

}  // namespace dynamiccl
