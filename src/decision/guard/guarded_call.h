// SPDX-License-Identifier: Apache-2.0
// One call of a communicator as its leader hands it to the guard.
#pragma once

#include <cstdint>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

// A call with what was decided about it and the times that ranks reported. Times are in nanoseconds.
struct GuardedCall {
  TableKey key;
  CallUse use = CallUse::kChoice;
  CollectiveConfig config;  // what was asked for; kLeaveNcclAlone: NCCL's own
  uint32_t version = 0;     // table version that decided it
  int64_t at_ns = 0;        // when it was issued
  // Kernel time of the rank that arrived last, which is the shortest of the ranks that were timed; below 0:
  // not timed.
  int64_t transfer_ns = -1;
  // The time by which choices are compared: the median of the ranks' times, in which waiting for each other
  // is included. The shortest time would favour choices in which one rank is done early. Below 0: use
  // transfer_ns.
  int64_t cost_ns = -1;
  int64_t skew_ns = -1;   // last minus first arrival; below 0: not known
  bool captured = false;  // into a CUDA graph: it has no times and is never a trial
  // The call was timed only because a change of the fabric is suspected. Such calls are slow more often than
  // others, so their times judge no choice.
  bool on_suspicion = false;
  uint64_t number = 0;  // number of the call on its communicator

  // cost_ns where it is known, else transfer_ns.
  int64_t compared_ns() const { return cost_ns > 0 ? cost_ns : transfer_ns; }
};

}  // namespace dynamiccl
