// SPDX-License-Identifier: Apache-2.0
// A cell of the matrix is a release on a machine through a door (real_nccl_run.h). Class Matrix checks the
// properties that must hold in a cell. Each cell takes about five runs of the driver.
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

// One checked property of a cell.
struct Finding {
  std::string check;
  bool holds = false;
  size_t compared = 0;  // calls that were compared
  std::string detail;   // the first call that is wrong; empty when the property holds
};

struct CellResult {
  Cell cell;
  std::string skipped;  // why nothing was run: no such door, or the release was not fetched
  std::vector<Finding> findings;
  double seconds = 0;
  // The seconds that rank 0 spent in ncclCommInitRank in the run alone; 0 when an earlier run alone was used.
  double init_seconds = 0;

  bool holds() const;
};

class Matrix {
 public:
  // `scratch` must exist. Files of the runs stay in it.
  explicit Matrix(std::string scratch) : scratch_(std::move(scratch)) {}

  // Checks a cell. The findings have these names:
  //   runnable     the fetched library can be run; a finding only when it cannot, and then the only one
  //   alone        NCCL runs without DynamICCL, its log fits what it launches, all ranks launch alike
  //   off          DynamICCL is loaded without settings: NCCL makes the same sequence of choices
  //   observe      DynamICCL records: the same sequence, and the trace has every call of every rank
  //   asked        DynamICCL has rules and a policy: every rank decides alike, and NCCL takes every decision.
  //                Algorithm and protocol are exact, channels follow the release's rules.
  //                Calls that are left to NCCL are as alone
  CellResult Check(const Cell& cell);

 private:
  const std::vector<Choice>* Alone(const Cell& cell, CellResult* result);

  std::string scratch_;
  std::map<std::string, std::vector<Choice>> alone_;  // by the cell's name without a door
};

// Returns the channels that NCCL up to 2.30 gives a single call whose tuner asked for `asked` channels. The
// communicator has at most `limit` channels. Each channel gets at least 32 KiB of traffic (NCCL
// src/enqueue.cc, scheduleCollTasksToPlan). Release 2.21 rounds each share to grains of 512 bytes (LL) or 4
// KiB, as its runs show.
int ScheduledChannels(const NcclRelease& release, const Choice& call, int asked, int limit, int ranks);

}  // namespace dynamiccl::real_nccl
