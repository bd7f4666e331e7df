// SPDX-License-Identifier: Apache-2.0
// Settings with which ranks can share a GPU. NCCL otherwise refuses two ranks of a communicator on one GPU of
// one host.
#pragma once

#include <optional>
#include <string>

#include "src/base/status.h"
#include "tools/bench/unique_id_exchange.h"

namespace dynamiccl::cuda {

// The value of NCCL_HOSTID for this rank's process when ranks of this host share GPUs; nothing when every
// rank has a GPU. With it NCCL sees each process as a host of its own and moves all traffic between processes
// over sockets. Times then mean little, but data and decisions are real.
//
// It is an error when ranks of one process would share a GPU, as a process is one host. Pure function. Any
// rank of a process may be asked; their answers differ, and one of them is used.
Result<std::optional<std::string>> HostIdOnSharedGpus(const RankPlace& place, int devices);

}  // namespace dynamiccl::cuda
