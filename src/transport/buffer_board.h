// SPDX-License-Identifier: Apache-2.0
// Where a rank announces its buffers to the ranks of its node: one board a channel in its segment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/transport/shared_buffer.h"

namespace dynamiccl {

// Everything in it starts as zero. `send` and `recv` belong to announcement number `announced`; they change
// only after every rank of the node has finished with the one before.
struct BufferBoard {
  alignas(64) BufferRef send;
  BufferRef recv;
  uint64_t multiplier;  // bits of this rank's PreMulSum factor, where the operator has one
  alignas(64) std::atomic<uint64_t> announced;
  // Announcements in which this rank touches its peers' memory no more.
  alignas(64) std::atomic<uint64_t> finished;
};

// Small data that goes with an announcement instead of being read from the rank's buffer: the peers wait once
// and nobody waits for them. Two a channel, taken in turns: who announces number s has read every parcel of s
// - 1, so the parcel of s - 2 is free for s once this rank has seen all announcements of s - 1.
inline constexpr size_t kParcelBytes = size_t{16} << 10;
inline constexpr uint64_t kParcels = 2;
struct Parcel {
  alignas(64) uint64_t multiplier;  // as in BufferBoard
  alignas(64) std::byte data[kParcelBytes];
};

// How a rank that gives up, and whose program may then free its buffers, keeps its peers from touching them.
//   peer:  touching = true, then look at `withdrawn`; touching = false after the piece
//   rank:  withdrawn = true, then wait until no peer is touching
// All accesses are in one total order, so either the peer sees that the rank withdrew or the rank sees the
// peer.
struct alignas(64) AccessGate {
  std::atomic<bool> touching;
  alignas(64) std::atomic<bool> withdrawn;
};

}  // namespace dynamiccl
