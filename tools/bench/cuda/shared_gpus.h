// SPDX-License-Identifier: Apache-2.0
// Lets several ranks share one GPU. Without these settings NCCL refuses two ranks of a communicator on one
// GPU of one host.
#pragma once

#include <optional>
#include <string>

#include "src/base/status.h"
#include "tools/bench/unique_id_exchange.h"

namespace dynamiccl::cuda {

// Returns the value of NCCL_HOSTID for this rank's process if ranks of this host share GPUs; nothing if every
// rank has its own GPU. With this value NCCL takes each process for a host of its own and moves all traffic
// between processes over sockets. Times then mean little, but data and decisions are real.
//
// It is an error when ranks of one process would share a GPU, because NCCL takes the process for one host.
// The ranks of a process get different answers; use any one of them. The function is pure.
Result<std::optional<std::string>> HostIdOnSharedGpus(const RankPlace& place, int devices);

}  // namespace dynamiccl::cuda
