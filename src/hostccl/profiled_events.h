// SPDX-License-Identifier: Apache-2.0
// The events that a profiler plugin sees, with NCCL's hierarchy:
//   GroupApi > CollApi > Coll > KernelCh > KernelPhase     GroupApi > P2pApi > P2p > KernelCh
//   GroupApi > KernelLaunch     Group: parentGroup of the Coll and P2p events of one launch
//
// API, launch, Coll and P2p events start and stop on the thread that issues the calls. They stop when the
// work has been enqueued. A KernelCh event is one channel of one Coll or P2p event. It starts and stops on
// the thread that runs the launch, with the times at which the channel's lane began and ended, in nanoseconds
// of CLOCK_MONOTONIC. KernelPhase events (version 7) split that time: initial_sync lasts until the first
// piece moves, compute until the last piece, final_sync until the lane ends.
//
// Proxy, network and copy-engine events are never sent, because hostccl has no proxy and its links are part
// of the lane. Without a profiler, or with a mask of 0, each of these classes costs one branch.
#pragma once

#include <memory>
#include <vector>

#include "src/hostccl/plugin_host/profiler_session.h"
#include "src/nccl_abi/host_stream.h"

namespace dynamiccl::hostccl {

class Communicator;
struct CollectiveOperation;
struct CommunicatorPlan;
struct Transfer;

// The handles of the profiler events of one call.
struct TaskEvents {
  int mask = 0;  // the plugin's mask when the call was issued; 0: nothing is recorded
  void* group_api = nullptr;
  void* api = nullptr;   // CollApi or P2pApi
  void* task = nullptr;  // Coll or P2p
  uint64_t user_tag = 0;
};

// The API events of one outermost group, on the thread that issues the group. GroupApi begins with the first
// call and stops when this object is destroyed.
class GroupEvents {
 public:
  GroupEvents() = default;
  GroupEvents(GroupEvents&& other) noexcept { *this = std::move(other); }
  GroupEvents& operator=(GroupEvents&& other) noexcept;
  ~GroupEvents();

  // These record a call and fill in its handles. `depth` is the depth of the group that contains the call; 1
  // for a call outside of groups.
  void OnCollective(const Communicator& communicator, cudaStream_t stream, int depth,
                    CollectiveOperation& operation);
  void OnTransfer(const Communicator& communicator, cudaStream_t stream, int depth, bool sends,
                  Transfer& transfer);
  // Records that the end of the outermost group begins.
  void EndBegins();

 private:
  // Returns false if the plugin wants no event of this call.
  bool Begin(const Communicator& communicator, int depth, TaskEvents& events);

  std::shared_ptr<const ProfilerSession> session_;
  void* handle_ = nullptr;
};

// The KernelLaunch, Group, Coll and P2p events of one communicator's part of a launch. They start before the
// launch is passed to its stream and stop when this object is destroyed. The constructor stores the handles
// of the Coll and P2p events in the plan.
class LaunchEvents {
 public:
  LaunchEvents(CommunicatorPlan& plan, cudaStream_t stream);
  LaunchEvents(LaunchEvents&&) = default;
  ~LaunchEvents();

 private:
  // Each of these starts its events if the plugin wants at least one of these events.
  void StartLaunch(int mask, void* group_api, cudaStream_t stream);
  void StartCollective(CollectiveOperation& operation);
  void StartTransfer(Transfer& transfer, bool sends);

  std::shared_ptr<ProfilerSession> session_;
  int rank_ = 0;
  void* launch_ = nullptr;
  void* group_ = nullptr;
  std::vector<void*> tasks_;
};

// The KernelCh event of a lane, on the thread that runs the launch. It describes at most one call at a time.
class KernelChannelEvent {
 public:
  KernelChannelEvent() = default;
  KernelChannelEvent(const KernelChannelEvent&) = delete;
  KernelChannelEvent& operator=(const KernelChannelEvent&) = delete;
  ~KernelChannelEvent() { End(); }

  void Begin(const ProfilerSession* session, const TaskEvents& events, int channel) {
    if ((events.mask & (ncclProfileKernelCh | ncclProfileKernelPhase)) != 0) Start(session, events, channel);
  }
  // Records the present time. The lane calls this each time it has moved one piece of the call's data.
  void NotePiece() {
    if (session_ != nullptr) StampPiece();
  }
  void End() {
    if (session_ != nullptr) Stop();
  }

 private:
  // These are called only while a plugin wants the events.
  void Start(const ProfilerSession* session, const TaskEvents& events, int channel);
  void StampPiece();
  void Stop();
  void SendPhase(int phase, int64_t begin_ns, int64_t end_ns) const;

  const ProfilerSession* session_ = nullptr;
  void* handle_ = nullptr;
  int channel_ = 0;
  bool phases_ = false;
  int64_t begin_ns_ = 0;
  int64_t first_piece_ns_ = 0;
  int64_t last_piece_ns_ = 0;
};

}  // namespace dynamiccl::hostccl
