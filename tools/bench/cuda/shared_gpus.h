// SPDX-License-Identifier: Apache-2.0
// What ranks that share GPUs must tell NCCL, which refuses two ranks of a communicator on one GPU of one
// host.
#pragma once

#include <optional>
#include <string>

#include "src/base/status.h"
#include "tools/bench/unique_id_exchange.h"

namespace dynamiccl::cuda {

// NCCL_HOSTID of this rank's process where ranks of this host share GPUs: each process becomes a host of its
// own, and all traffic between processes goes over sockets, so times say little, but data and decisions are
// real. None where every rank has a GPU. An error where ranks of one process would share one, as a process is
// one host. Pure; of the ranks of one process any may be asked, and what they say differs.
Result<std::optional<std::string>> HostIdOnSharedGpus(const RankPlace& place, int devices);

}  // namespace dynamiccl::cuda
