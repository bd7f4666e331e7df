// SPDX-License-Identifier: Apache-2.0
// One collective call. The two types enforce law 1 of docs/architecture.md, "all ranks decide the same":
// CollectiveCall holds only values that are equal on all ranks, so decisions may use it.
// IssuedCall adds values that one rank measured or labelled; they are recorded and never used to decide.
#pragma once

#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/coverage.h"
#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"
#include "src/collective/role.h"

namespace dynamiccl {

// This plain value has no owner and may be copied between threads. It is equal on all ranks.
struct CollectiveCall {
  uint64_t communicator = 0;  // CommunicatorInfo::id
  // Number of the call on its communicator, in program order from 0. A group (ncclGroupStart to the outermost
  // ncclGroupEnd) that has a collective counts as one call, and so does a collective outside a group. Sends
  // and receives do not count, because not all ranks issue them; they carry the number of the next
  // collective.
  uint64_t call_number = 0;
  uint64_t bytes = 0;  // NCCL's total (see TotalBytes)
  Collective collective = Collective::kAllReduce;
  DataType data_type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // Position of this call among the collectives of its group, and the number of collectives in the group.
  // Sends and receives are numbered separately from collectives.
  uint16_t index_in_group = 0;
  uint16_t group_size = 1;  // number of such calls in the group
  int32_t n_ranks = 1;
};

// A call together with the values that the issuing rank measured and the labels that the program gave. Traces
// and reports use them; decisions never do.
struct IssuedCall {
  CollectiveCall call;
  int32_t rank = 0;
  int32_t root_or_peer = -1;
  int64_t issued_ns = 0;     // CLOCK_MONOTONIC
  int64_t duration_ns = -1;  // -1: not measured
  // The role that the program gave to this call with the markers of src/annotate; kUnknown without markers.
  Role labelled_role = Role::kUnknown;
  Phase labelled_phase = Phase::kUnknown;
  ZeroStage labelled_stage = ZeroStage::kUnknown;
  Coverage coverage = Coverage::kUnknown;
};

}  // namespace dynamiccl
