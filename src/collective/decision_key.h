// SPDX-License-Identifier: Apache-2.0
// The first law as a type: all that one decision may depend on beside what the ranks attested before. Every
// field is equal on all ranks of the communicator at the same call; its comment says why. A rank number, an
// address, a label of the trainer's or a time measured on this rank must never become a field: then ranks
// could choose differently, and NCCL would hang or mix up data.
#pragma once

#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/role.h"

namespace dynamiccl {

// Built from NCCL's question by the tuner session alone (plugin/tuner), and read by DecisionEngine::Decide.
struct DecisionKey {
  // NCCL requires that all ranks issue the same collectives in the same order.
  Collective collective = Collective::kAllReduce;
  // NCCL's total over all ranks of the collectives that it issues as one batch. NCCL requires equal counts
  // and data types on all ranks, and forms batches from the calls of a group alone.
  uint64_t bytes = 0;
  // Number of collectives that NCCL put into the batch; equal on all ranks for the same reason.
  int n_pipe_ops = 1;
  // Recognised from the communicator's calls so far, by integer arithmetic of an attested policy.
  // kUnknown on every rank where NCCL asks on a thread of its own: ranks attest whether it does.
  Role role = Role::kUnknown;
  // The communicator's outermost group ends in program order, which NCCL requires to be equal; 0 where `role`
  // is unknown for the reason above.
  uint64_t call_number = 0;
  // False in a group that the program ends with ncclGroupSimulateEnd. Its answers are used by no collective,
  // so it counts nothing, and ranks may differ in how often they simulate.
  bool is_call = true;
  // Recognised in the same way as `role`, and unknown where `role` is. Only rules read these two.
  Phase phase = Phase::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;
  // A part of the table version that decides the call, so a number on which all ranks agreed. Only rules read
  // it.
  MemoryPressure memory = MemoryPressure::kUnknown;

  friend bool operator==(const DecisionKey&, const DecisionKey&) = default;
};

}  // namespace dynamiccl
