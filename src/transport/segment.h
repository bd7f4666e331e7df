// SPDX-License-Identifier: Apache-2.0
// The memory in which one rank receives: a FIFO from every peer for every channel. Untouched pages take no
// memory.
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

// Channels of collectives, then one for Send and Recv.
inline constexpr int kMaxChannels = 8;
inline constexpr int kPointToPointChannel = kMaxChannels;
inline constexpr int kFifosPerPeer = kMaxChannels + 1;

struct alignas(4096) SegmentHeader {
  Doorbell doorbell;  // rung when something was posted to this rank, or a credit returned
  // Collective launches that this rank has completed on the communicator: a peer that left after completing a
  // launch is not missed in it.
  alignas(64) std::atomic<uint64_t> completed_launches;
  AccessGate gate;
  BufferBoard boards[kMaxChannels];
  Parcel parcels[kMaxChannels][kParcels];
};

// A state for each rail between two nodes, of which there are at most as many as ranks, and for each two
// ranks.
inline constexpr size_t kRailStates = 8;
constexpr size_t LinkStates(int n_ranks) {
  return (kRailStates + 1) * static_cast<size_t>(n_ranks) * static_cast<size_t>(n_ranks);
}

// Shared by the ranks (threads) of one process: shared_ptr, because the last of them unmaps it.
class Segment {
 public:
  static Result<std::shared_ptr<Segment>> Create(int n_ranks);
  // What a peer in another process created.
  static Result<std::shared_ptr<Segment>> Attach(UniqueFd fd, int n_ranks);
  // What a peer in this process created.
  static Result<std::shared_ptr<Segment>> FindInProcess(uint64_t address);
  ~Segment();

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(memory_.data()); }
  Fifo& fifo(int from_rank, int channel) const;
  // What the ranks share of emulated links: LinkStates(n_ranks) of them. Only those of rank 0's segment are
  // used.
  LinkState& link_state(size_t index) const;
  JobClock& job_clock() const;
  int fd() const { return memory_.fd(); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_.data()); }
  size_t bytes() const { return memory_.size(); }

  // Rings the doorbell of everybody who sleeps on it: used to make waiters notice an abort.
  void WakeSleepers() const;

 private:
  Segment(SharedMemory memory, int n_ranks) : memory_(std::move(memory)), n_ranks_(n_ranks) {}

  SharedMemory memory_;
  int n_ranks_;
};

}  // namespace dynamiccl
