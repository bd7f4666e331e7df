// SPDX-License-Identifier: Apache-2.0
// If NCCL asked twice about the same collective of one call and got different answers, NCCL chooses the chunk
// size.
#include "src/decision/chunk_choice.h"

namespace dynamiccl {

void ChunkChoice::Note(uint64_t call_number, Collective collective, const CollectiveConfig& config,
                       uint64_t chunk_bytes) {
  LastChoice& noted = noted_[static_cast<size_t>(collective)];
  if (!noted.known || noted.call_number != call_number) {
    noted = {true, call_number, config, chunk_bytes};
    return;
  }
  const bool alike = noted.config.algorithm == config.algorithm && noted.config.protocol == config.protocol &&
                     noted.chunk_bytes == chunk_bytes;
  if (!alike) noted.chunk_bytes = 0;
}

uint64_t ChunkChoice::ChunkBytes(uint64_t call_number, Collective collective, Algorithm algorithm,
                                 Protocol protocol) const {
  const LastChoice& noted = noted_[static_cast<size_t>(collective)];
  const bool asked = noted.known && noted.call_number == call_number;
  const bool same = noted.config.algorithm == algorithm && noted.config.protocol == protocol;
  return asked && same ? noted.chunk_bytes : 0;
}

}  // namespace dynamiccl
