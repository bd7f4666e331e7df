// SPDX-License-Identifier: Apache-2.0
// Our own rank in a comparison: obeys the control line over the NCCL of this process.
#pragma once

#include "tools/bench/against/control_line.h"
#include "tools/bench/bench_session.h"

namespace dynamiccl {

struct ComparedRankOptions {
  std::string socket;
  std::string binding;  // "core": this rank's threads stay on core rank % cores; "none"
  std::string
      tuner_path;  // of the sweep's tuner: the best config is picked in each setup; empty: the default choice
};

// Binds the process before any library starts a thread. Call it first.
void BindRank(const std::string& binding, int rank);

// Returns when told to quit, or when the other side is gone.
Status ServeComparison(BenchSession& session, const ComparedRankOptions& options);

}  // namespace dynamiccl
