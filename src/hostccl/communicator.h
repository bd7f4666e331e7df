// SPDX-License-Identifier: Apache-2.0
// One rank of a communicator: its peers, its memory, its planner and its state of failure.
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
#include "src/hostccl/plan_cache.h"
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

// The settings that a rank reads from its environment when a communicator is made. max_channels, rank_order
// and emulated must be equal on all ranks; the ranks compare these three (bootstrap_message.h). The others
// may differ. Copies between processes are used only if all ranks allow them.
struct CommunicatorSettings {
  int64_t timeout_ms = 30000;  // milliseconds without progress until an operation fails; set at creation
  bool user_sets_timeout = false;
  int32_t max_channels = 8;
  bool rank_order = false;   // HOSTCCL_SUM
  bool inline_calls = true;  // HOSTCCL_INLINE
  EmulatedRelease emulated = EmulatedRelease::k230;
  bool copies_between_processes = true;  // HOSTCCL_CMA

  static Result<CommunicatorSettings> FromEnvironment();
};

// One rank of a communicator, made by communicator_init.h. The handle and the work queued on streams share it
// by shared_ptr. Calls that issue work come from one thread at a time. A launch runs on that thread or on a
// stream's thread, one launch after another (launch_mutex). The comment of a function says so if any thread
// may call it at any time.
//
// The class has many members because it owns the parts of one rank and hands them to the launch in progress.
// Each part has a class of its own; this class manages only the lifetimes of the parts, the order of launches
// and the state of failure.
//
// A failure is permanent: after Fail, Abort or Interrupt the launches in progress end soon and no new one
// starts.
class Communicator {
 public:
  // The values that communicator_init.cc passes to the constructor. `link_ranks` maps ranks to the ranks of
  // `links`. After a split, `links` belongs to another communicator.
  struct Parts {
    CommunicatorInfo info;
    int device = 0;
    CommunicatorSettings settings;
    ncclConfig_t config{};
    std::shared_ptr<EmulatedLinks> links;
    std::vector<int> link_ranks;  // by rank: number of the rank in `links`
    bool is_split = false;
    std::unique_ptr<PeerMesh> mesh;                   // null for one rank
    std::vector<std::shared_ptr<Segment>> segments;   // by rank; the shadow for a rank on another host
    std::unique_ptr<RemoteRelay> relay;               // null when all ranks are on one host
    std::shared_ptr<const RegroupListeners> regroup;  // null for one rank
    bool copies_between_processes = false;            // agreed by all ranks
  };
  explicit Communicator(Parts parts);

  int rank() const { return parts_.info.rank; }
  int n_ranks() const { return parts_.info.n_ranks; }
  int device() const { return parts_.device; }
  const CommunicatorInfo& info() const { return parts_.info; }
  const CommunicatorSettings& settings() const { return parts_.settings; }
  // Returns the time-out in milliseconds. It grows with hostcclRaiseTimeout, unless the user sets it. Any
  // thread may call this.
  int64_t timeout_ms() const;
  const std::shared_ptr<EmulatedLinks>& links() const { return parts_.links; }
  const std::vector<int>& link_ranks() const { return parts_.link_ranks; }
  const ncclConfig_t& config() const { return parts_.config; }
  PeerMesh* mesh() const { return parts_.mesh.get(); }
  // Returns true if this rank can map the peer's memory or read it with process_vm_readv.
  bool same_host(int peer) const { return mesh() == nullptr || mesh()->same_host(peer); }
  Planner& planner() const { return *planner_; }
  void set_planner(std::unique_ptr<Planner> planner) { planner_ = std::move(planner); }
  // Returns the profiler session; null without a profiler plugin. Groups share the session, because their API
  // events may last longer than a call.
  const std::shared_ptr<ProfilerSession>& profiler() const { return profiler_; }
  void set_profiler(std::shared_ptr<ProfilerSession> profiler) { profiler_ = std::move(profiler); }
  SegmentHeader& header(int rank) const { return parts_.segments[static_cast<size_t>(rank)]->header(); }
  // Return the ranks in the order of the ring, and this rank's position in the ring.
  std::span<const int> ring() const { return ring_; }
  int ring_position() const { return ring_position_; }
  const TreeNeighbours& tree(int which) const { return trees_[static_cast<size_t>(which)]; }
  // Returns the connections of a channel, indexed by peer. Only the launch in progress may use them.
  Connection* channel(int index) {
    return &connections_[static_cast<size_t>(index) * parts_.segments.size()];
  }

  // Returns the exchange with the other ranks of this node on one channel. Only the launch in progress may
  // use it, and only with more than one rank.
  NodeExchange& node_exchange(int channel) { return *node_exchanges_[static_cast<size_t>(channel)]; }
  // Returns the ranks of each node. Nodes are in the order of their first ranks. node_index() is the node of
  // this rank.
  std::span<const std::vector<int>> ranks_by_node() const { return ranks_by_node_; }
  int node_index() const { return node_index_; }
  PeerBuffers& peer_buffers() { return peer_buffers_; }
  // Returns true if ranks may read and write each other's private memory; equal on all ranks.
  bool copies_between_processes() const { return parts_.copies_between_processes; }
  // Waits until no peer touches this rank's buffers any more. It is called after a failure, before the
  // program may free the buffers. For a process that ended, or that only reads, it waits at most 0.5 s. For a
  // process that is stopped while it writes it waits as long as the time-out, and then logs a warning.
  void WithdrawBuffers();

  // Returns true if there is a core for each rank, so that a waiting rank may spin. Each rank may be bound to
  // certain cores, so the cores of all ranks are counted together. A split communicator shares the machine
  // with all ranks of its original communicator, so all those ranks are counted.
  bool may_spin() const { return may_spin_; }
  // Returns the plans of repeated calls. Only the thread that issues calls may use them.
  PlanCache& plan_cache() { return plan_cache_; }

  // Begins a launch with collectives and returns its number, from 1; equal on all ranks.
  uint64_t BeginCollectiveLaunch() {
    if (!parts_.is_split) parts_.links->NoteCall(static_cast<int64_t>(collective_launches_ + 1));
    return ++collective_launches_;
  }
  // Tells the peers that this rank has completed its part of the launch.
  void CompleteCollectiveLaunch(uint64_t launch);

  // Records the first failure for ncclCommGetAsyncError, and tells all peers by closing the connections.
  // Later failures are ignored. Any thread may call this.
  void Fail(ErrorKind kind, const std::string& message);
  // Returns ncclSuccess until the communicator has failed. Any thread may call this.
  ncclResult_t async_error() const { return async_error_.load(std::memory_order_acquire); }
  // Returns the result of a launch that ends or wants to start now: the first failure, ncclRemoteError after
  // Interrupt, else ncclSuccess. Any thread may call this.
  ncclResult_t health() const;
  // Returns the message that was passed to Fail; empty before a failure. Any thread may call this.
  std::string failure() const;
  // Implements ncclCommAbort, called on another thread: every thread that waits in this communicator returns
  // soon, and the peers notice that this rank is gone.
  void Abort();
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  // Implements ncclCommRevoke. It is like Abort, but the peers are not told, and the communicator can still
  // be split, shrunk or grown.
  void Interrupt();
  bool interrupted() const { return interrupted_.load(std::memory_order_acquire); }

  // Returns true if the address lies in a window (ncclCommWindowRegister) whose memory comes from
  // ncclMemAlloc on all ranks. The result is equal on all ranks as long as they use the same windows.
  bool InWindow(const void* address) const { return windows_.InSharedWindow(address); }
  RegisteredWindows& windows() { return windows_; }
  ReductionOperators& operators() { return operators_; }
  const RegroupListeners* regroup() const { return parts_.regroup.get(); }
  // Returns the size of the shared memory in which this rank receives, in bytes.
  uint64_t receive_bytes() const;

  // Ends the sessions of the plugins, on the thread that destroys the handle. Queued work must have ended
  // before.
  void Close();

  // The most recent launch; launches on different streams and threads wait for its end, so that they run in
  // order. `launch_mutex` guards this value, and a thread that runs a call inline holds the mutex. So if a
  // thread holds the mutex and the last launch is complete, no launch is running.
  struct LastLaunch {
    std::shared_ptr<const Completion> completion;
    HostStream* stream = nullptr;
    bool brief = false;  // small enough to wait for it instead of queueing behind it
  };
  std::mutex& launch_mutex() { return launch_mutex_; }
  LastLaunch& last_launch() { return last_launch_; }
  InlineGauge& inline_gauge() { return inline_gauge_; }
  // Blocks until all launches have ended. Any thread may call this.
  void WaitForLaunches();
  // These return numbers for the communicators that are made from this one. Each number is equal on the ranks
  // that take part.
  uint64_t NextSplit() { return splits_++; }
  uint64_t NextShrink() { return shrinks_++; }

 private:
  // The constructor calls these. They make the table of connections, and the exchanges with the ranks of this
  // node.
  void Connect();
  // Waits until the peer no longer touches buffers of other ranks, or until the time that WithdrawBuffers
  // allows has passed since `begin_ns`.
  void AwaitLeave(int peer, int64_t begin_ns) const;
  // Closes the sockets of mesh and relay, so that the peers notice that this rank is gone.
  void CutConnections();
  void JoinNode();
  std::vector<int> NodesOfRanks() const;
  bool HasCoreForEachRank() const;

  // These members do not change after construction, except that planner and profiler are set once, before the
  // first launch.
  Parts parts_;
  std::unique_ptr<Planner> planner_;
  std::shared_ptr<ProfilerSession> profiler_;
  std::vector<std::unique_ptr<ShapedLink>> outgoing_links_;  // by rail and peer; null: not shaped
  std::vector<int> ring_;
  int ring_position_ = 0;
  std::array<TreeNeighbours, 2> trees_;
  bool may_spin_ = false;
  std::vector<Connection> connections_;
  std::vector<std::vector<int>> ranks_by_node_;
  int node_index_ = 0;
  // Both members serve the launch in progress.
  PeerBuffers peer_buffers_;
  NodeExchange::Scratch piece_scratch_;
  std::vector<std::unique_ptr<NodeExchange>> node_exchanges_;  // by channel
  PlanCache plan_cache_;
  // These counters are equal on all ranks because all ranks make the same calls.
  uint64_t collective_launches_ = 0;
  uint64_t splits_ = 0;
  uint64_t shrinks_ = 0;
  // The order of launches. This mutex guards last_launch_ and inline_gauge_.
  std::mutex launch_mutex_;
  LastLaunch last_launch_;
  InlineGauge inline_gauge_;
  // Each of these tables has its own lock, so any thread may use it.
  RegisteredWindows windows_;
  ReductionOperators operators_;
  // The state of failure. Any thread may read or set it. The mutex guards failure_.
  std::atomic<bool> aborted_{false};
  std::atomic<bool> interrupted_{false};
  std::atomic<ncclResult_t> async_error_{ncclSuccess};
  mutable std::mutex failure_mutex_;
  std::string failure_;
};

// Returns the ncclResult_t for a kind of error.
ncclResult_t ToNcclResult(ErrorKind kind);

}  // namespace dynamiccl::hostccl
