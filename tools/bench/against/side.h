// SPDX-License-Identifier: Apache-2.0
// One side of a comparison: the ranks of one library. They live for the whole run and sleep when it is not
// their turn.
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

// Says how a side is started. In the command, "@socket" stands for the socket's path and "@ranks" for the
// number of ranks.
struct SideProgram {
  // Name of the library, for example "openmpi".
  std::string name;
  // A launcher that starts all ranks, or the program of one rank.
  std::vector<std::string> command;
  bool starts_all_ranks = true;  // false: started once for each rank, with torchrun's variables
  EnvironmentChanges environment;
};

// One collective at one size.
struct ComparedCall {
  TestedCollective collective = TestedCollective::kAllReduce;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  CallLayout layout;
};

// Microseconds of one round.
struct SideTimes {
  // A call among calls back to back, on the slowest rank.
  double microseconds = 0;
  // Median of single calls, each the maximum over ranks.
  double p50_us = 0;
  // 99th percentile of the same single calls.
  double p99_us = 0;
};

// GB/s that all ranks together copy: at the call's footprint, for the copy limit; and at a fixed size, which
// shows whether something else runs on the machine.
struct CopyRates {
  double limit = 0;
  double steady = 0;
};

// Owns the ranks' processes and their control lines. One thread uses it.
class Side {
 public:
  // Starts the ranks and waits until all have connected to a socket in `folder`, at most 120 s. Their output
  // goes to a log in the same folder, whose end becomes part of an error.
  static Result<Side> Start(const SideProgram& program, int n_ranks, const std::string& folder);
  Side(Side&& other) noexcept;
  // Tells the ranks to quit; processes that remain after 3 s are killed. Ranks also end when this process is
  // gone.
  ~Side();

  const std::string& name() const { return name_; }
  // Prepares the call on all ranks. Returns the config that rank 0 picked, empty where it picks none.
  // kUnsupported when the library lacks the call.
  Result<std::string> SetUp(const ComparedCall& call);
  // Times the call of the latest SetUp.
  Result<SideTimes> Time(int iterations, int warmups, int singles);
  // Probes the copy rate. Only hostccl's side knows this command.
  Result<CopyRates> Copy(double footprint, double milliseconds);

 private:
  explicit Side(std::string name) : name_(std::move(name)) {}
  // Starts the processes of the program.
  Status Launch(const SideProgram& program, int n_ranks, const std::string& socket);
  // Accepts one connection of each rank and orders them by rank.
  Status Meet(ControlListener& listener, int n_ranks);
  // `error` with the side's name and the end of its log.
  tl::unexpected<Error> Failed(const Error& error) const;
  // Sends a line to every rank and waits for all answers; returns rank 0's. An "error ..." of any rank is
  // kUnsupported.
  Result<std::string> Ask(const std::string& line);

  std::string name_;
  std::string log_;
  std::vector<pid_t> processes_;
  // The port on which rank 0 listens. It stays reserved as long as the ranks run, so that no other program
  // gets it.
  std::optional<ReservedPort> port_;
  // Control lines by rank.
  std::vector<ControlLine> ranks_;
};

}  // namespace dynamiccl
