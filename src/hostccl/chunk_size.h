// SPDX-License-Identifier: Apache-2.0
// The chunk size of a call, by the rule of NCCL 2.24 to 2.30 (calcCollChunking) in units of hostccl's slots.
// Small messages over deep trees get small chunks, so that the levels of the tree work side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl::hostccl {

// The inputs of the rule, which are equal on all ranks. `config` must have an algorithm, a protocol and
// channels.
struct ChunkSizeQuery {
  Collective collective = Collective::kAllReduce;
  CollectiveConfig config;
  uint64_t bytes = 0;  // NCCL's total of the call
  int n_ranks = 1;
  int n_nodes = 1;
};

// Returns the largest chunk of a protocol, in bytes: half a FIFO, as NCCL's chunkSteps are half of its steps.
// A FIFO can then hold one chunk while the next one is filled, even if all ranks send before they receive.
size_t MostChunkBytes(Protocol protocol);

// Returns the bytes of data in a chunk, at most MostChunkBytes and equal on all ranks. The protocol then
// aligns the size.
size_t DefaultChunkBytes(const ChunkSizeQuery& query);

}  // namespace dynamiccl::hostccl
