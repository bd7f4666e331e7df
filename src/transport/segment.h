// SPDX-License-Identifier: Apache-2.0
// The memory in which one rank receives, laid out as
//   SegmentHeader | Fifo[from rank][channel] | JobClock | LinkState[LinkStates(n_ranks)]
// Every rank makes one for each communicator and maps those of its peers. Untouched pages take no memory.
#pragma once

#include <atomic>
#include <memory>

#include "src/base/shared_memory.h"
#include "src/base/status.h"
#include "src/transport/buffer_board.h"
#include "src/transport/doorbell.h"
#include "src/transport/fifo.h"
#include "src/transport/link_state.h"

namespace dynamiccl {

// Channels of collectives. One more channel carries Send and Recv.
inline constexpr int kMaxChannels = 8;
inline constexpr int kPointToPointChannel = kMaxChannels;
inline constexpr int kFifosPerPeer = kMaxChannels + 1;

// The cores that the thread which made a segment may use: bit c % 64 of word c / 64 for core c. All zeros if
// the system does not say.
struct CoreSet {
  uint64_t words[16];
};

// Holds what peers read and write besides the FIFOs.
struct alignas(4096) SegmentHeader {
  // Rung when something was posted to this rank or a credit came back.
  Doorbell doorbell;
  // Number of collective launches that this rank has completed on the communicator. A peer that ends after
  // completing a launch is not missed in that launch. It is written in each launch, so it stays away from the
  // doorbell, which peers read in each launch: processors fetch cache lines in pairs.
  alignas(128) std::atomic<uint64_t> completed_launches;
  alignas(128) AccessGate gate;
  // Written before the segment is shared, and never again.
  alignas(64) CoreSet cores;
  BufferBoard boards[kMaxChannels];
  Parcel parcels[kMaxChannels][kParcels];
};

// States of links: one for each rail between two nodes, of which there are at most as many as ranks, and one
// for each two ranks.
inline constexpr size_t kRailStates = 8;
constexpr size_t LinkStates(int n_ranks) {
  return (kRailStates + 1) * static_cast<size_t>(n_ranks) * static_cast<size_t>(n_ranks);
}

// Owns the mapping of one segment. The ranks (threads) of a process share it by shared_ptr, and the last of
// them unmaps it. Contents are accessed without locks, by the rules of their types.
class Segment {
 public:
  // Makes a segment filled with zeros. kUnavailable when memory runs out.
  static Result<std::shared_ptr<Segment>> Create(int n_ranks);
  // Maps a segment that a peer in another process created. kInvalidArgument when it is too short.
  static Result<std::shared_ptr<Segment>> Attach(UniqueFd fd, int n_ranks);
  // Returns the segment at `address` that a peer in this process created. kPeerFailed when that peer has
  // given up.
  static Result<std::shared_ptr<Segment>> FindInProcess(uint64_t address);
  ~Segment();

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(memory_.data()); }
  Fifo& fifo(int from_rank, int channel) const;
  // Returns the shared state of emulated links, `index` below LinkStates(n_ranks). Only those in the segment
  // of rank 0 are used.
  LinkState& link_state(size_t index) const;
  JobClock& job_clock() const;
  int fd() const { return memory_.fd(); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_.data()); }
  size_t bytes() const { return memory_.size(); }

  // Rings the doorbell, so that everybody who sleeps on it notices an abort.
  void WakeSleepers() const;

 private:
  Segment(SharedMemory memory, int n_ranks) : memory_(std::move(memory)), n_ranks_(n_ranks) {}

  SharedMemory memory_;
  int n_ranks_;
};

}  // namespace dynamiccl
