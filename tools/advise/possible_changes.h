// SPDX-License-Identifier: Apache-2.0
// What a user can change of a job without us: its framework's settings, each as the job that it makes, with
// what it costs and how it is set.
#pragma once

#include <string>
#include <vector>

#include "tools/advise/advised_job.h"

namespace dynamiccl {

struct PossibleChange {
  std::string what;     // "bucket_bytes 4M -> 16M"
  AdvisedJob job;       // with it
  std::string how;      // in the user's framework
  std::string remark;   // what it does to numbers or to the program; empty: nothing
  double memory_bytes;  // of a rank, more (or less) than before, by the formulas of `zero estimate`
};

// Every change of one setting that the framework takes. `ranks_per_node` says over what hybrid sharding would
// divide.
std::vector<PossibleChange> PossibleChanges(const AdvisedJob& job, int ranks_per_node);

// States, two buckets and gathered units of a rank, bytes; without activations.
double MemoryOf(const AdvisedJob& job);

}  // namespace dynamiccl
