// SPDX-License-Identifier: Apache-2.0
// One side of a comparison: the ranks of one library, alive for the whole run and asleep when it is not their
// turn.
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

// How a side is started.
struct SideProgram {
  std::string name;                  // "openmpi"
  std::vector<std::string> command;  // a launcher that starts all ranks, or one rank
  bool starts_all_ranks = true;      // otherwise once a rank, with torchrun's variables
  EnvironmentChanges environment;
};

// One collective at one size.
struct ComparedCall {
  TestedCollective collective = TestedCollective::kAllReduce;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  CallLayout layout;
};

struct SideTimes {
  double microseconds = 0;  // back to back, the slowest rank
  double p50_us = 0;        // of single calls, maxima over ranks
  double p99_us = 0;
};

// Rate of copies, GB/s over all ranks: for the copy limit at the call's footprint, and as a sign of what else
// runs.
struct CopyRates {
  double limit = 0;
  double steady = 0;
};

class Side {
 public:
  // Starts the ranks, which write to `log`, and waits until all have come to the socket in `folder`.
  static Result<Side> Start(const SideProgram& program, int n_ranks, const std::string& folder);
  Side(Side&& other) noexcept;
  // Ranks end by themselves when told, or when this process is gone; what is left after 3 s is killed.
  ~Side();

  const std::string& name() const { return name_; }
  // What rank 0 adds: the config that it chose, else nothing. kUnsupported when the library has no such call.
  Result<std::string> SetUp(const ComparedCall& call);
  Result<SideTimes> Time(int iterations, int warmups, int singles);
  // Only our own ranks know this word.
  Result<CopyRates> Copy(double footprint, double milliseconds);

 private:
  explicit Side(std::string name) : name_(std::move(name)) {}
  Status Launch(const SideProgram& program, int n_ranks, const std::string& socket);
  Status Meet(ControlListener& listener, int n_ranks);
  tl::unexpected<Error> Failed(const Error& error) const;
  // Sends a line to every rank and waits for all; rank 0's answer. An answer "error ..." of any rank is
  // kUnsupported.
  Result<std::string> Ask(const std::string& line);

  std::string name_;
  std::string log_;
  std::vector<pid_t> processes_;
  std::optional<ReservedPort> port_;  // where rank 0 listens, for as long as the ranks run
  std::vector<ControlLine> ranks_;
};

}  // namespace dynamiccl
