// SPDX-License-Identifier: Apache-2.0
// One rank of hostccl in a comparison with other libraries. The rank reads commands from a socket, the
// control line, and executes them with the NCCL library of this process (docs/benchmarking.md).
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
  // Path of the tuner plugin with which the fastest config is picked for each call. Empty: the call is timed
  // with the library's own choice.
  std::string tuner_path;
};

// Binds this process to a core as `binding` says. Call it before any library starts a thread.
void BindRank(const std::string& binding, int rank);

// Executes the commands of the comparison. Returns when the comparison sends "quit", or when it has ended.
Status ServeComparison(BenchSession& session, const ComparedRankOptions& options);

}  // namespace dynamiccl
