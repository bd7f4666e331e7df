// SPDX-License-Identifier: Apache-2.0
// Chunk sizes for the calls of a group. NCCL first asks about configurations and later about chunks. The
// later questions name neither the call nor its size, only a channel's part of it, so the answers to the
// earlier ones are kept. They count only where all questions about the collective were answered alike.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl {

// The answers on one communicator, owned by its tuner session (plugin/tuner); one thread at a time.
// Everything that goes in is equal on all ranks, so the sizes that come out are equal too.
class ChunkChoice {
 public:
  // Keeps what the configuration of a batch of the call became. `chunk_bytes` 0: the chunk is NCCL's.
  void Note(uint64_t call_number, Collective collective, const CollectiveConfig& config,
            uint64_t chunk_bytes);
  // Returns the chunk size in bytes for a question about this call; 0: NCCL's.
  uint64_t At(uint64_t call_number, Collective collective, Algorithm algorithm, Protocol protocol) const;

 private:
  // The answers about one collective of the last call.
  struct OfCollective {
    bool known = false;
    uint64_t call_number = 0;
    CollectiveConfig config;
    uint64_t chunk_bytes = 0;
  };
  std::array<OfCollective, kTunableCollectives> noted_{};
};

}  // namespace dynamiccl
