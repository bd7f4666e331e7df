// SPDX-License-Identifier: Apache-2.0
// How ranks hand NCCL's unique id around before NCCL runs: every rank calls rank 0 over TCP and gets the same
// bytes.
#pragma once

#include <chrono>

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"
#include "zero_workloads/parallel/rank_environment.h"

namespace dynamiccl::zero {

struct JoinSettings {
  std::chrono::milliseconds timeout{30000};
  uint64_t run_fingerprint = 0;  // of what must be equal on all ranks: options and data
};

// `id` is rank 0's; other ranks' argument is ignored. All ranks get rank 0's id, or all ranks that came get
// an error that names the missing ranks (kTimeout), a rank that came twice or a rank with another world size
// or fingerprint (kInvalidArgument).
Result<ncclUniqueId> ExchangeUniqueId(const RankEnvironment& environment, const ncclUniqueId& id,
                                      const JoinSettings& join);

}  // namespace dynamiccl::zero
