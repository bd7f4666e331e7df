// SPDX-License-Identifier: Apache-2.0
// Chunk sizes for the calls of a group. NCCL asks first about configurations and later about chunks. A
// question about a chunk names neither the call nor its size, only a channel's part of the data. So this
// class keeps the answers to the questions about configurations, and uses them if all questions about the
// collective had the same answer.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl {

// The decided chunk sizes of one communicator. Its tuner session (plugin/tuner) owns the object; one thread
// at a time. All inputs are equal on all ranks, so the returned sizes are equal too.
class ChunkChoice {
 public:
  // Notes the decided configuration of one batch of a call. `chunk_bytes` 0: NCCL chooses the chunk size.
  void Note(uint64_t call_number, Collective collective, const CollectiveConfig& config,
            uint64_t chunk_bytes);
  // Returns the chunk size in bytes for a question about this call; 0: NCCL chooses.
  uint64_t ChunkBytes(uint64_t call_number, Collective collective, Algorithm algorithm,
                      Protocol protocol) const;

 private:
  // The answers about one collective of the last call.
  struct LastChoice {
    bool known = false;
    uint64_t call_number = 0;
    CollectiveConfig config;
    uint64_t chunk_bytes = 0;
  };
  std::array<LastChoice, kTunableCollectives> noted_{};
};

}  // namespace dynamiccl
