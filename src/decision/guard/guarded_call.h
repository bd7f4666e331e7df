// SPDX-License-Identifier: Apache-2.0
// One call of a communicator, in the form in which the leader passes it to the guard.
#pragma once

#include <cstdint>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

// A call with its decision and the times that ranks reported. Times are in nanoseconds.
struct GuardedCall {
  TableKey key;
  CallUse use = CallUse::kChoice;
  CollectiveConfig config;  // the config that was asked for; kLeaveNcclAlone: NCCL's own choice
  uint32_t version = 0;     // table version that decided the call
  int64_t at_ns = 0;        // when the call was issued
  // Kernel time of the rank that arrived last. It is the shortest time among the timed ranks, because the
  // others wait inside the kernel. Below 0: not timed.
  int64_t transfer_ns = -1;
  // The duration by which choices are compared: the median over the ranks, in which waiting for other ranks
  // is included. The shortest duration would favour choices in which one rank finishes early. Below 0: use
  // transfer_ns.
  int64_t cost_ns = -1;
  // When the leader's device reached the call in its stream, in nanoseconds of the device's clock. Below 0:
  // not known.
  int64_t begun_ns = -1;
  int64_t skew_ns = -1;   // last minus first arrival; below 0: not known
  bool captured = false;  // captured into a CUDA graph: the call has no times and is never a trial
  // True if the call was timed only because a change of the fabric is suspected. Such calls are slow more
  // often than others, so their times must not judge a choice.
  bool on_suspicion = false;
  uint64_t number = 0;  // number of the call on its communicator
  // The structure LSTM's output before the call: the number of changes that it has recognised on this
  // communicator (RecognisedStructure::changed), and the ZeRO stage.
  uint32_t structure_changes = 0;
  ZeroStage stage = ZeroStage::kUnknown;

  // cost_ns where it is known, else transfer_ns.
  int64_t compared_ns() const { return cost_ns > 0 ? cost_ns : transfer_ns; }
};

}  // namespace dynamiccl
