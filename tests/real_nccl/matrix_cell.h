// SPDX-License-Identifier: Apache-2.0
// One cell of the matrix: a release on a machine through a door, and what must hold there. Each cell takes
// five or six runs of the driver.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/real_nccl/choices.h"
#include "tests/real_nccl/real_nccl_run.h"

namespace dynamiccl::real_nccl {

struct Cell {
  NcclRelease release;
  std::string machine = "dgx_h100";
  int nodes = 2;
  int ranks_per_node = 8;
  Door door = Door::kPreload;

  std::string name() const;  // "2.28.9 dgx_h100 2x8 preload"
};

// One property of a cell.
struct Finding {
  std::string check;
  bool holds = false;
  size_t compared = 0;  // calls that were looked at
  std::string detail;   // the first call that is wrong; empty where it holds
};

struct CellResult {
  Cell cell;
  std::string skipped;  // why there is nothing to run: no such door, or the release was not fetched
  std::vector<Finding> findings;
  double seconds = 0;
  double init_seconds =
      0;  // of the run alone: what rank 0 waited in ncclCommInitRank; 0 where that is not new

  bool holds() const;
};

class Matrix {
 public:
  // `scratch` must exist; what runs leave is there.
  explicit Matrix(std::string scratch) : scratch_(std::move(scratch)) {}

  //   runnable     only in the result where the fetched library cannot be run, and then the only one
  //   alone        NCCL runs without us, its log fits what it launches, all ranks launch alike
  //   off          loaded with nothing to do: the same sequence of choices
  //   observe      recording: the same sequence, and every call of every rank in the trace
  //   asked        rules and a policy: every rank decides alike, and NCCL takes every decision, algorithm and
  //                protocol exactly, channels by the release's rules; calls that are left to NCCL are as
  //                alone
  CellResult Check(const Cell& cell);

 private:
  const std::vector<Choice>* Alone(const Cell& cell, CellResult* result);

  std::string scratch_;
  std::map<std::string, std::vector<Choice>> alone_;  // by cell without door
};

// Returns the channels that NCCL up to 2.30 gives a lone call whose tuner asked for `asked`, on a
// communicator with at most `limit`. Each channel gets at least 32 KiB of traffic (NCCL src/enqueue.cc,
// scheduleCollTasksToPlan). Release 2.21 rounds this to grains of 512 bytes (LL) or 4 KiB, which was found by
// running it.
int ScheduledChannels(const NcclRelease& release, const Choice& call, int asked, int limit, int ranks);

}  // namespace dynamiccl::real_nccl
