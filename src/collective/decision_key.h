// SPDX-License-Identifier: Apache-2.0
// The only facts about one call that its decision may depend on. Beside them a decision depends only on data
// that the ranks have attested. So this type enforces law 1 of docs/architecture.md, "all ranks decide the
// same". Every field is equal on all ranks of the communicator at the same call, and its comment says why. A
// rank number, an address, the trainer's label or a time measured on this rank must never become a field:
// ranks could then choose differently, and NCCL would hang or corrupt data.
#pragma once

#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/role.h"

namespace dynamiccl {

// The tuner session (plugin/tuner) builds this value when NCCL asks it about a call. DecisionEngine::Decide
// reads it.
struct DecisionKey {
  // Equal on all ranks because NCCL requires that all ranks issue the same collectives in the same order.
  Collective collective = Collective::kAllReduce;
  // Total bytes, over all ranks, of the collectives that NCCL issues as one batch. Equal on all ranks because
  // NCCL requires equal counts and data types, and forms batches only from the calls of one group.
  uint64_t bytes = 0;
  // Number of collectives that NCCL put into the batch. Equal on all ranks because NCCL forms batches only
  // from the calls of one group.
  int n_pipe_ops = 1;
  // The role of the call, recognised from the communicator's earlier calls by integer arithmetic of an
  // attested policy. It is kUnknown on every rank where NCCL asks the tuner on a thread of NCCL's own. Ranks
  // attest whether NCCL does.
  Role role = Role::kUnknown;
  // Number of the communicator's outermost group ends so far, in program order. Equal on all ranks because
  // NCCL requires the same order of calls. It is 0 where NCCL asks the tuner on a thread of NCCL's own.
  uint64_t call_number = 0;
  // False in a group that the program ends with ncclGroupSimulateEnd. No collective uses the answers to such
  // a group, and nothing counts it, so ranks may differ in how often they simulate.
  bool is_call = true;
  // Phase and ZeRO stage of the call, recognised in the same way as `role` and unknown where `role` is. Only
  // the user's rules depend on them.
  Phase phase = Phase::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;
  // A part of the table version that decides the call, so all ranks have agreed on this value. Only rules
  // read it.
  MemoryPressure memory = MemoryPressure::kUnknown;

  friend bool operator==(const DecisionKey&, const DecisionKey&) = default;
};

}  // namespace dynamiccl
