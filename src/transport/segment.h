// SPDX-License-Identifier: Apache-2.0
// A segment is the memory in which one rank receives. Its layout:
//   SegmentHeader | Fifo[from rank][channel] | JobClock | LinkState[LinkStates(n_ranks)]
// Every rank makes one segment for each communicator and maps the segments of its peers. Untouched pages take
// no memory.
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

// Number of channels for collectives. One more channel carries Send and Recv.
inline constexpr int kMaxChannels = 8;
inline constexpr int kPointToPointChannel = kMaxChannels;
inline constexpr int kFifosPerPeer = kMaxChannels + 1;

// The set of cores that the thread which made a segment may use: bit c % 64 of word c / 64 stands for core c.
// All bits are zero if the system does not tell.
struct CoreSet {
  uint64_t words[16];
};

// The part of a segment, besides the FIFOs, that peers read and write.
struct alignas(4096) SegmentHeader {
  // Peers ring this doorbell after they have posted something to this rank or given back a credit.
  Doorbell doorbell;
  // Number of collective launches that this rank has completed on the communicator. A peer that ends after
  // completing a launch does not make that launch fail. This counter is written in each launch, and peers
  // read the doorbell in each launch. So the counter lies 128 bytes away from the doorbell: processors fetch
  // cache lines in pairs.
  alignas(128) std::atomic<uint64_t> completed_launches;
  alignas(128) AccessGate gate;
  // Written before the segment is shared, and never changed afterwards.
  alignas(64) CoreSet cores;
  BufferBoard boards[kMaxChannels];
  Parcel parcels[kMaxChannels][kParcels];
};

// Number of link states for each pair of nodes, one for each rail. There are at most as many nodes as ranks.
// Each pair of ranks has one more state, for a link inside a node.
inline constexpr size_t kRailStates = 8;
constexpr size_t LinkStates(int n_ranks) {
  return (kRailStates + 1) * static_cast<size_t>(n_ranks) * static_cast<size_t>(n_ranks);
}

// Owns the mapping of one segment. The ranks (threads) of a process share it by shared_ptr, and the last of
// them unmaps it. The contents are accessed without locks, by the rules of their types.
class Segment {
 public:
  // Makes a segment filled with zeros. Returns kUnavailable when memory runs out.
  static Result<std::shared_ptr<Segment>> Create(int n_ranks);
  // Maps a segment that a peer in another process created. Returns kInvalidArgument when the memory is too
  // short for a segment.
  static Result<std::shared_ptr<Segment>> Attach(UniqueFd fd, int n_ranks);
  // Returns the segment at `address` that a peer in this process created. Returns kPeerFailed when that peer
  // has given up.
  static Result<std::shared_ptr<Segment>> FindInProcess(uint64_t address);
  ~Segment();

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(memory_.data()); }
  Fifo& fifo(int from_rank, int channel) const;
  // Returns the shared state of emulated link number `index`, which must be below LinkStates(n_ranks). Only
  // the states in the segment of rank 0 are used.
  LinkState& link_state(size_t index) const;
  JobClock& job_clock() const;
  int fd() const { return memory_.fd(); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_.data()); }
  size_t bytes() const { return memory_.size(); }

  // Rings the doorbell, so that everybody who sleeps on it wakes up and notices an abort.
  void WakeSleepers() const;

 private:
  Segment(SharedMemory memory, int n_ranks) : memory_(std::move(memory)), n_ranks_(n_ranks) {}

  SharedMemory memory_;
  int n_ranks_;
};

}  // namespace dynamiccl
