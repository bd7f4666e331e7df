// SPDX-License-Identifier: Apache-2.0
// Making communicators: from a unique id, or by splitting another.
#pragma once

#include <memory>

#include "src/base/status.h"
#include "src/hostccl/communicator.h"

namespace dynamiccl::hostccl {

// A new id, and the thread that serves its rendezvous in this process. Bytes 40 to 127 are zero.
Result<ncclUniqueId> MakeUniqueId();

struct InitRequest {
  int n_ranks = 1;
  int rank = 0;
  int device = 0;
  ncclUniqueId id{};
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
};

// Collective over the ranks of the id. Ignores the bytes of the id that MakeUniqueId leaves zero.
Result<std::shared_ptr<Communicator>> InitCommunicator(const InitRequest& request);

struct SplitRequest {
  int color = NCCL_SPLIT_NOCOLOR;
  int key = 0;
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
};

// Collective over the parent. Null for NCCL_SPLIT_NOCOLOR.
Result<std::shared_ptr<Communicator>> SplitCommunicator(Communicator& parent, const SplitRequest& request);

}  // namespace dynamiccl::hostccl
