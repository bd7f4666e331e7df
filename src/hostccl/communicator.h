// SPDX-License-Identifier: Apache-2.0
// One rank of a communicator: its peers, its memory, its planner and its state of health.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/communicator_info.h"
#include "src/hostccl/emulated_release.h"
#include "src/hostccl/host_stream.h"
#include "src/hostccl/inline_gauge.h"
#include "src/hostccl/node_exchange.h"
#include "src/hostccl/planner.h"
#include "src/hostccl/plugin_host/profiler_session.h"
#include "src/hostccl/reduction_operators.h"
#include "src/hostccl/registered_windows.h"
#include "src/hostccl/regroup.h"
#include "src/hostccl/topology/double_binary_tree.h"
#include "src/transport/connection.h"
#include "src/transport/emulated_links.h"
#include "src/transport/peer_buffers.h"
#include "src/transport/peer_mesh.h"
#include "src/transport/remote_relay.h"
#include "src/transport/segment.h"

namespace dynamiccl::hostccl {

// Read at init; all but timeout_ms must be equal on all ranks.
struct CommunicatorSettings {
  int64_t timeout_ms = 30000;
  int32_t max_channels = 8;
  bool rank_order = false;   // HOSTCCL_SUM
  bool inline_calls = true;  // HOSTCCL_INLINE
  EmulatedRelease emulated = EmulatedRelease::k230;
  bool copies_between_processes = true;  // HOSTCCL_CMA

  static Result<CommunicatorSettings> FromEnvironment();
};

// Made by communicator_init.h. Shared by its handle and by work queued on streams: shared_ptr.
class Communicator {
 public:
  struct Parts {
    CommunicatorInfo info;
    int device = 0;
    CommunicatorSettings settings;
    ncclConfig_t config{};
    std::shared_ptr<EmulatedLinks> links;
    std::vector<int> link_ranks;                     // by rank: the rank's number in `links`
    bool is_split = false;                           // `links` belong to another communicator
    std::unique_ptr<PeerMesh> mesh;                  // null for one rank
    std::vector<std::shared_ptr<Segment>> segments;  // by rank; of a rank on another host its shadow
    std::unique_ptr<RemoteRelay> relay;              // null when all ranks are on one host
    std::shared_ptr<const RegroupDoors> doors;       // null for one rank
    bool copies_between_processes = false;           // agreed by all ranks
  };
  explicit Communicator(Parts parts);

  int rank() const { return parts_.info.rank; }
  int n_ranks() const { return parts_.info.n_ranks; }
  int device() const { return parts_.device; }
  const CommunicatorInfo& info() const { return parts_.info; }
  const CommunicatorSettings& settings() const { return parts_.settings; }
  const std::shared_ptr<EmulatedLinks>& links() const { return parts_.links; }
  const std::vector<int>& link_ranks() const { return parts_.link_ranks; }
  const ncclConfig_t& config() const { return parts_.config; }
  PeerMesh* mesh() const { return parts_.mesh.get(); }
  // The peer's memory can be mapped here, or read with process_vm_readv.
  bool same_host(int peer) const { return mesh() == nullptr || mesh()->same_host(peer); }
  Planner& planner() const { return *planner_; }
  void set_planner(std::unique_ptr<Planner> planner) { planner_ = std::move(planner); }
  // Null without a profiler plugin. Shared with groups, whose API events may outlast a call: shared_ptr.
  const std::shared_ptr<ProfilerSession>& profiler() const { return profiler_; }
  void set_profiler(std::shared_ptr<ProfilerSession> profiler) { profiler_ = std::move(profiler); }
  SegmentHeader& header(int rank) const { return parts_.segments[static_cast<size_t>(rank)]->header(); }
  // Ranks in ring order, and where this one stands.
  std::span<const int> ring() const { return ring_; }
  int ring_position() const { return ring_position_; }
  const TreeNeighbours& tree(int which) const { return trees_[static_cast<size_t>(which)]; }
  // Connections of a channel, by peer. Used by the launch in progress alone.
  Connection* channel(int index) {
    return &connections_[static_cast<size_t>(index) * parts_.segments.size()];
  }

  // The ranks of this node, for one channel, and the memory of theirs that is mapped here. Used by the launch
  // in progress alone. Only with more than one rank.
  NodeExchange& node_exchange(int channel) { return *node_exchanges_[static_cast<size_t>(channel)]; }
  // Nodes in the order of their first ranks, and which of them is this rank's.
  std::span<const std::vector<int>> ranks_by_node() const { return ranks_by_node_; }
  int node_index() const { return node_index_; }
  PeerBuffers& peer_buffers() { return peer_buffers_; }
  // The system lets the ranks read and write each other's private memory; equal on all ranks.
  bool copies_between_processes() const { return parts_.copies_between_processes; }
  // Returns when no peer touches this rank's buffers, or will. After a failure, before the program may free
  // them.
  void WithdrawBuffers();

  // A launch that runs collectives; equal on all ranks, from 1.
  uint64_t BeginCollectiveLaunch() {
    if (!parts_.is_split) parts_.links->NoteCall(static_cast<int64_t>(collective_launches_ + 1));
    return ++collective_launches_;
  }
  // This rank has done its part of it.
  void CompleteCollectiveLaunch(uint64_t launch);

  // First failure: kept for ncclCommGetAsyncError, and all peers are told. Any thread.
  void Fail(ErrorKind kind, const std::string& message);
  // ncclSuccess while healthy.
  ncclResult_t async_error() const { return async_error_.load(std::memory_order_acquire); }
  // What Fail was told; empty while healthy.
  std::string failure() const;
  // From another thread: whoever waits in this communicator returns soon.
  void Abort();
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  // ncclCommRevoke: as Abort, but peers are not told and the communicator can still be split, shrunk or
  // grown.
  void Interrupt();
  bool interrupted() const { return interrupted_.load(std::memory_order_acquire); }

  // In a window of ncclCommWindowRegister that is memory of ncclMemAlloc on all ranks. Equal on all ranks as
  // long as they use the same windows.
  bool InWindow(const void* address) const { return windows_.InSharedWindow(address); }
  RegisteredWindows& windows() { return windows_; }
  ReductionOperators& operators() { return operators_; }
  const RegroupDoors* doors() const { return parts_.doors.get(); }
  // Of shared memory in which this rank receives.
  uint64_t receive_bytes() const;

  // Ends the plugins' part, on the thread that destroys the handle; queued work must be done.
  void Close();

  // The order of launches, on whatever streams and threads. `launch_mutex` guards it, and is held while a
  // call runs inline: who holds it and finds `last_launch` complete knows that nothing runs.
  struct LastLaunch {
    std::shared_ptr<const Completion> completion;
    HostStream* stream = nullptr;
    bool brief = false;  // small enough to be waited for instead of queueing behind it
  };
  std::mutex& launch_mutex() { return launch_mutex_; }
  LastLaunch& last_launch() { return last_launch_; }
  InlineGauge& inline_gauge() { return inline_gauge_; }
  // Until all that was launched has ended. Any thread.
  void WaitForLaunches();
  // Numbers of the communicators made from this one, each kind equal on the ranks that take part.
  uint64_t NextSplit() { return splits_++; }
  uint64_t NextShrink() { return shrinks_++; }

 private:
  void Connect();
  void CutConnections();
  void JoinNode();
  std::vector<int> NodesOfRanks() const;

  Parts parts_;
  std::unique_ptr<Planner> planner_;
  std::shared_ptr<ProfilerSession> profiler_;
  std::vector<std::unique_ptr<ShapedLink>> outgoing_links_;  // by rail and peer; null: not shaped
  std::vector<int> ring_;
  int ring_position_ = 0;
  std::array<TreeNeighbours, 2> trees_;
  std::vector<Connection> connections_;
  std::vector<std::vector<int>> ranks_by_node_;
  int node_index_ = 0;
  PeerBuffers peer_buffers_;
  NodeExchange::Scratch piece_scratch_;
  std::vector<std::unique_ptr<NodeExchange>> node_exchanges_;  // by channel
  uint64_t collective_launches_ = 0;
  uint64_t splits_ = 0;
  uint64_t shrinks_ = 0;
  std::mutex launch_mutex_;
  LastLaunch last_launch_;
  InlineGauge inline_gauge_;
  RegisteredWindows windows_;
  ReductionOperators operators_;
  std::atomic<bool> aborted_{false};
  std::atomic<bool> interrupted_{false};
  std::atomic<ncclResult_t> async_error_{ncclSuccess};
  mutable std::mutex failure_mutex_;
  std::string failure_;
};

ncclResult_t ToNcclResult(ErrorKind kind);

}  // namespace dynamiccl::hostccl
