// SPDX-License-Identifier: Apache-2.0
// One side of a comparison: the ranks of one library. The ranks live for the whole comparison and sleep while
// another side is timed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "src/base/reserved_port.h"
#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"
#include "tools/bench/against/control_line.h"
#include "tools/bench/tested_collective.h"
#include "tools/launch/launch_plan.h"

namespace dynamiccl {

// Says how the ranks of one library are started. In the command, "@socket" stands for the path of the socket
// to which they connect, and "@ranks" for the number of ranks.
struct SideProgram {
  // Name of the library, for example "openmpi".
  std::string name;
  // A launcher that starts all ranks, or the program of one rank.
  std::vector<std::string> command;
  bool starts_all_ranks = true;  // false: started once for each rank, with torchrun's variables
  EnvironmentChanges environment;
};

// The call that a comparison times: one collective at one size.
struct ComparedCall {
  TestedCollective collective = TestedCollective::kAllReduce;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  CallLayout layout;
};

// Times of one side (library) in one round, in microseconds.
struct SideTimes {
  // Time of one call among calls back to back, on the slowest rank.
  double microseconds = 0;
  // Median of the single calls. The time of a single call is its maximum over the ranks.
  double p50_us = 0;
  // 99th percentile of the same single calls.
  double p99_us = 0;
};

// Rates in GB/s at which all ranks together copy memory. One is measured over as much memory as the call
// touches, for the copy limit. The other is measured over a fixed size and shows whether something else runs
// on the machine.
struct CopyRates {
  double limit = 0;
  double steady = 0;
};

// Owns the processes of one library's ranks and the connections to them. One thread uses it.
class Side {
 public:
  // Starts the ranks and waits until all have connected to a socket in `folder`, at most 120 s. The output of
  // the ranks goes to a log in the same folder. An error includes the end of the log.
  static Result<Side> Start(const SideProgram& program, int n_ranks, const std::string& folder);
  Side(Side&& other) noexcept;
  // Tells the ranks to quit. Processes that still run after 3 s are killed. Ranks also end when the
  // comparison's own process is gone.
  ~Side();

  const std::string& name() const { return name_; }
  // Prepares the call on all ranks. Returns the config that rank 0 picked, or an empty text if this library
  // picks none. The error is kUnsupported when the library lacks the call.
  Result<std::string> SetUp(const ComparedCall& call);
  // Times the call that the latest SetUp prepared.
  Result<SideTimes> Time(int iterations, int warmups, int singles);
  // Measures the rates at which all ranks together copy memory. Only hostccl's ranks can do this.
  Result<CopyRates> Copy(double footprint, double milliseconds);

 private:
  explicit Side(std::string name) : name_(std::move(name)) {}
  // Starts the processes of the program.
  Status Launch(const SideProgram& program, int n_ranks, const std::string& socket);
  // Accepts one connection from each rank and sorts the connections by rank.
  Status Meet(ControlListener& listener, int n_ranks);
  // Returns `error` with the library's name and the end of the ranks' log added.
  tl::unexpected<Error> Failed(const Error& error) const;
  // Sends a line to every rank and waits for all answers. Returns the answer of rank 0. If any rank answers
  // "error ...", the result is the error kUnsupported.
  Result<std::string> Ask(const std::string& line);

  std::string name_;
  std::string log_;
  std::vector<pid_t> processes_;
  // The port on which rank 0 listens. It stays reserved while the ranks run, so that no other program gets
  // it.
  std::optional<ReservedPort> port_;
  // The connections to the ranks, indexed by rank.
  std::vector<ControlLine> ranks_;
};

}  // namespace dynamiccl
