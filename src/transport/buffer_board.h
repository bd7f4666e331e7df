// SPDX-License-Identifier: Apache-2.0
// The boards on which a rank announces its buffers to the other ranks of its node. Collectives that read
// peers' buffers directly (hostccl's one-pass algorithms) use one board per channel. The boards lie in the
// rank's segment (segment.h) and start as zeros.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/transport/shared_buffer.h"

namespace dynamiccl {

// One rank's current announcement on one channel. `send` and `recv` belong to announcement number
// `announced`. The owner changes them only after every rank of the node has finished with the previous
// announcement. Only the owner writes its board; its peers read it.
struct BufferBoard {
  alignas(64) BufferRef send;
  BufferRef recv;
  // Bits of this rank's PreMulSum factor, if the operator has one.
  uint64_t multiplier;
  alignas(64) std::atomic<uint64_t> announced;
  // Number of announcements with which this rank has finished: it no longer touches its peers' memory for
  // them.
  alignas(64) std::atomic<uint64_t> finished;
};

// In bytes. Data up to this size travel with the announcement, so peers need not read the rank's buffer. The
// peers wait once, for the announcement, and the rank waits for no peer.
//
// Each channel has two parcels, used in turns. A rank makes announcement s + 1 only after it has read every
// parcel of announcement s. So once this rank has seen all announcements number s + 1, every peer has read
// this rank's parcel number s, and announcement s + 2 may overwrite the parcel.
inline constexpr size_t kParcelBytes = size_t{16} << 10;
inline constexpr uint64_t kParcels = 2;
// Holds data that travel with an announcement. `announced` is the number of that announcement; the owner
// stores it last. `announced` shares its cache line with the first data, so a call of few bytes moves only
// one line. On a machine with two cores each further line costs 130 ns. `multiplier` means the same as in
// BufferBoard.
struct Parcel {
  alignas(64) std::atomic<uint64_t> announced;
  uint64_t multiplier;
  std::byte data[kParcelBytes];
};

// Keeps peers from touching the buffers of a rank that gives up, because its program may then free them.
// Every rank has a gate and writes only its own gate.
//   peer:  sets touching = true, reads `withdrawn` of the others, uses a buffer only if all are false, then
//          sets touching = false
//   rank:  sets withdrawn = true, then waits until no peer is touching
// All accesses to these two are in one total order (seq_cst). So either the peer sees that the rank has
// withdrawn, or the rank sees that the peer is touching.
struct alignas(64) AccessGate {
  std::atomic<bool> touching;
  // Id of the process that may write to other ranks' buffers while `touching` is true; 0 if it only reads
  // them. The owner stores this before it sets `touching`.
  std::atomic<int64_t> writer;
  alignas(64) std::atomic<bool> withdrawn;
};

}  // namespace dynamiccl
