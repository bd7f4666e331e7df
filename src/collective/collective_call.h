// SPDX-License-Identifier: Apache-2.0
// One collective call. CollectiveCall holds only values equal on all ranks: decisions and fingerprints may
// use it. IssuedCall adds what one rank saw: it is recorded, never decided upon.
#pragma once

#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/coverage.h"
#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"
#include "src/collective/role.h"

namespace dynamiccl {

struct CollectiveCall {
  uint64_t communicator = 0;  // CommunicatorInfo::id
  // Outermost group ends with collective work on this communicator, in program order, from 0. Sends and
  // receives do not count, since not all ranks issue them: theirs is the number of the next collective.
  uint64_t call_number = 0;
  uint64_t bytes = 0;  // NCCL's total (see TotalBytes)
  Collective collective = Collective::kAllReduce;
  DataType data_type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  uint16_t index_in_group = 0;  // position among the collectives, or among the others, of the group
  uint16_t group_size = 1;      // their number
  int32_t n_ranks = 1;
};

struct IssuedCall {
  CollectiveCall call;
  int32_t rank = 0;
  int32_t root_or_peer = -1;
  int64_t issued_ns = 0;     // CLOCK_MONOTONIC
  int64_t duration_ns = -1;  // -1: not measured
  // Labels of the program (src/annotate), kUnknown without them.
  Role labelled_role = Role::kUnknown;
  Phase labelled_phase = Phase::kUnknown;
  ZeroStage labelled_stage = ZeroStage::kUnknown;
  Coverage coverage = Coverage::kUnknown;
};

}  // namespace dynamiccl
