// SPDX-License-Identifier: Apache-2.0
// Gives each rank that shares a GPU a host name of its own, so that NCCL accepts the ranks.
#include "tools/bench/cuda/shared_gpus.h"

namespace dynamiccl::cuda {

Result<std::optional<std::string>> HostIdOnSharedGpus(const RankPlace& place, int devices) {
  if (place.n_local_ranks <= devices) return std::nullopt;
  if (place.ranks_in_process > devices) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "{} ranks as threads of one process on {} GPU(s): NCCL takes one rank of a "
                              "process on a GPU",
                              place.ranks_in_process, devices),
                    "make them processes (-g instead of -t), or set NCCL_MULTI_RANK_GPU_ENABLE=1 with NCCL "
                    "2.30.3 or later");
  }
  // The name contains the rank in the job, not the rank on the host, so that no two hosts have the same name.
  return "dynamiccl-shared-gpu-" + std::to_string(place.rank);
}

}  // namespace dynamiccl::cuda
