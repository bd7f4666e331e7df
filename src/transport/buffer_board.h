// SPDX-License-Identifier: Apache-2.0
// Where a rank announces its buffers to the other ranks of its node. Collectives that read peers' buffers
// directly (hostccl's one-pass algorithms) use one board a channel. The boards lie in the rank's segment
// (segment.h) and start as zeros.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/transport/shared_buffer.h"

namespace dynamiccl {

// One rank's current announcement on one channel. `send` and `recv` belong to announcement number
// `announced`; the owner changes them only after every rank of the node has finished with the announcement
// before. Peers read, the owner writes, except that each side advances its own counter.
struct BufferBoard {
  alignas(64) BufferRef send;
  BufferRef recv;
  // Bits of this rank's PreMulSum factor, where the operator has one.
  uint64_t multiplier;
  alignas(64) std::atomic<uint64_t> announced;
  // Number of announcements in which this rank no longer touches its peers' memory.
  alignas(64) std::atomic<uint64_t> finished;
};

// Bytes. Data up to this size travel with the announcement instead of being read from the rank's buffer: the
// peers wait once for the announcement, and nobody waits for the peers.
//
// Each channel has two parcels, used in turns. A rank that announces number s has read every parcel of s - 1.
// So once this rank has seen all announcements of s - 1, its parcel of s - 2 is free for s.
inline constexpr size_t kParcelBytes = size_t{16} << 10;
inline constexpr uint64_t kParcels = 2;
// One slot for such data. `announced` is the number of the announcement to which the data belong; the owner
// stores it last. It shares its cache line with the first data, so a call of few bytes moves one line: on a
// machine with two cores each further line costs 130 ns. `multiplier` is that of BufferBoard.
struct Parcel {
  alignas(64) std::atomic<uint64_t> announced;
  uint64_t multiplier;
  std::byte data[kParcelBytes];
};

// Keeps peers from touching the buffers of a rank that gives up, because its program may then free them.
//   peer:  touching = true, then look at `withdrawn`; touching = false after the piece
//   rank:  withdrawn = true, then wait until no peer is touching
// All accesses are in one total order (seq_cst), so either the peer sees that the rank withdrew or the rank
// sees the peer.
struct alignas(64) AccessGate {
  std::atomic<bool> touching;
  alignas(64) std::atomic<bool> withdrawn;
};

}  // namespace dynamiccl
