// SPDX-License-Identifier: Apache-2.0
// Chunk sizes for the calls of a group, kept from NCCL's questions about configurations to those about
// chunks. The latter say neither the call nor its size, only a channel's part of it, so what the former were
// answered counts, and only where they were all answered alike for the collective.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl {

// Of one communicator; one thread at a time. All that goes in is equal on all ranks, and so is what comes
// out.
class ChunkChoice {
 public:
  // What the configuration of a batch of the call became; 0 bytes: the chunk is NCCL's.
  void Note(uint64_t call_number, Collective collective, const CollectiveConfig& config,
            uint64_t chunk_bytes);
  // 0: NCCL's.
  uint64_t At(uint64_t call_number, Collective collective, Algorithm algorithm, Protocol protocol) const;

 private:
  struct OfCollective {
    bool known = false;
    uint64_t call_number = 0;
    CollectiveConfig config;
    uint64_t chunk_bytes = 0;
  };
  std::array<OfCollective, kTunableCollectives> noted_{};
};

}  // namespace dynamiccl
