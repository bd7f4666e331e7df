// SPDX-License-Identifier: Apache-2.0
// A rank of hostccl in a comparison with other libraries. It executes the commands of the control line with
// the NCCL library of this process (docs/benchmarking.md describes the lines).
#pragma once

#include "tools/bench/against/control_line.h"
#include "tools/bench/bench_session.h"

namespace dynamiccl {

// Says how a rank connects to the comparison and to which core it is bound.
struct ComparedRankOptions {
  // Path of the socket on which the comparison listens.
  std::string socket;
  // "core": this rank's threads stay on core (rank % cores). "none": they are not bound.
  std::string binding;
  // Path of the sweep's tuner, with which the best config is picked in each setup. Empty: the library's own
  // choice is timed.
  std::string tuner_path;
};

// Binds the process before any library starts a thread. Call it first.
void BindRank(const std::string& binding, int rank);

// Returns when the comparison sends "quit", or when it has ended.
Status ServeComparison(BenchSession& session, const ComparedRankOptions& options);

}  // namespace dynamiccl
