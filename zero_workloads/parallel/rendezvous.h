// SPDX-License-Identifier: Apache-2.0
// Exchanges NCCL's unique id between ranks before NCCL runs: every rank connects to rank 0 over TCP and
// receives the same bytes.
#pragma once

#include <chrono>

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"
#include "zero_workloads/parallel/rank_environment.h"

namespace dynamiccl::zero {

// The settings of the rendezvous; equal on all ranks.
struct JoinSettings {
  // Rank 0 waits this long for the others, and the others for rank 0 (--join-timeout).
  std::chrono::milliseconds timeout{30000};
  // Hash of the options and data that must be equal on all ranks.
  uint64_t run_fingerprint = 0;
};

// Every rank calls the function; `id` is used on rank 0 only. Either all ranks receive rank 0's id, or all
// ranks that connected receive an error. kTimeout names the missing ranks. kInvalidArgument names a rank that
// connected twice or has another world size or fingerprint.
Result<ncclUniqueId> ExchangeUniqueId(const RankEnvironment& environment, const ncclUniqueId& id,
                                      const JoinSettings& join);

}  // namespace dynamiccl::zero
