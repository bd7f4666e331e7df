// SPDX-License-Identifier: Apache-2.0
// The chunk size of a call as NCCL computes it (2.24 to 2.30, calcCollChunking), in hostccl's slots: small
// messages over deep trees get small chunks, so that the levels work side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl::hostccl {

struct ChunkSizeQuery {
  Collective collective = Collective::kAllReduce;
  CollectiveConfig config;  // complete
  uint64_t bytes = 0;       // NCCL's total of the call
  int n_ranks = 1;
  int n_nodes = 1;
};

// The most that pipelines well and that FIFOs hold while all ranks send before they receive: half a FIFO at
// most (NCCL's chunkSteps are half its steps).
size_t MostChunkBytes(Protocol protocol);

// Bytes of data in a chunk, equal on all ranks, at most MostChunkBytes. The protocol aligns it to its grain.
size_t DefaultChunkBytes(const ChunkSizeQuery& query);

}  // namespace dynamiccl::hostccl
