// SPDX-License-Identifier: Apache-2.0
// One call of a communicator as its leader hands it to the guard.
#pragma once

#include <cstdint>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

struct GuardedCall {
  TableKey key;
  CallUse use = CallUse::kChoice;
  CollectiveConfig config;  // that was asked for; kLeaveNcclAlone: NCCL's own
  uint32_t version = 0;     // of the table that it was decided by
  int64_t at_ns = 0;        // when it was issued
  // Kernel time of the rank that arrived last, or the least over the ranks that were timed; below 0: not
  // timed.
  int64_t transfer_ns = -1;
  // What choices are compared by: the median of the ranks' times, waiting for each other included. The least
  // would favour choices in which one rank is done early. Below 0: transfer_ns.
  int64_t cost_ns = -1;
  int64_t skew_ns = -1;   // last minus first arrival; below 0: not known
  bool captured = false;  // into a CUDA graph: no times, never a trial
  // Timed only because a change of the fabric is suspected: more often when it is slow, so it says nothing of
  // choices.
  bool on_suspicion = false;
  uint64_t number = 0;  // of the call on its communicator

  int64_t compared_ns() const { return cost_ns > 0 ? cost_ns : transfer_ns; }
};

}  // namespace dynamiccl
