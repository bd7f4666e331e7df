// SPDX-License-Identifier: Apache-2.0
// Fills in event descriptors, and decides by NCCL's rule whether an event is sent.
#include "src/hostccl/profiled_events.h"

#include <utility>

#include "src/base/clock.h"
#include "src/hostccl/communicator.h"
#include "src/hostccl/launch.h"

namespace dynamiccl::hostccl {
namespace {

// NCCL sends an event if the plugin wants this event or one below it in the hierarchy, because children need
// their parents (NCCL's profiler.cc).
constexpr int kKernelEvents = ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileKernelCh |
                              ncclProfileNetPlugin | ncclProfileKernelPhase;
constexpr int kCollEvents = ncclProfileColl | kKernelEvents;
constexpr int kP2pEvents = ncclProfileP2p | kKernelEvents;
constexpr int kGroupEvents = ncclProfileGroup | kCollEvents | kP2pEvents;
constexpr int kCollApiEvents = ncclProfileCollApi | kCollEvents;
constexpr int kP2pApiEvents = ncclProfileP2pApi | kP2pEvents;
constexpr int kGroupApiEvents =
    ncclProfileGroupApi | ncclProfileCollApi | ncclProfileP2pApi | ncclProfileKernelLaunch | kGroupEvents;

// In NCCL this is the number of warps of a channel. In hostccl one thread runs a channel.
constexpr uint8_t kWarps = 1;
constexpr const char* kPhaseNames[] = {"initial_sync", "compute", "final_sync"};

// Returns a descriptor of this type and parent. All other members are zero.
ncclProfilerEventDescr_v7_t Event(uint64_t type, void* parent) {
  ncclProfilerEventDescr_v7_t event{};
  event.type = type;
  event.parentObj = parent;
  return event;
}

const char* TransferName(bool sends) {
  return Name(sends ? Collective::kSend : Collective::kRecv).data();
}

size_t Elements(const Transfer& transfer) {
  return transfer.bytes / ElementBytes(transfer.data_type);
}

}  // namespace

GroupEvents& GroupEvents::operator=(GroupEvents&& other) noexcept {
  std::swap(session_, other.session_);
  std::swap(handle_, other.handle_);
  return *this;
}

GroupEvents::~GroupEvents() {
  if (session_ != nullptr) session_->Stop(handle_);
}

bool GroupEvents::Begin(const Communicator& communicator, int depth, TaskEvents& events) {
  const auto& session = communicator.profiler();
  if (session == nullptr) return false;
  events.mask = ProfilerSession::mask();
  if (events.mask == 0) return false;
  if (session_ == nullptr && (events.mask & kGroupApiEvents) != 0) {
    auto event = Event(ncclProfileGroupApi, nullptr);
    event.groupApi.groupDepth = depth;
    session_ = session;
    handle_ = session->Start(event);
    session->Record(handle_, ncclProfilerGroupStartApiStop);
  }
  events.group_api = handle_;
  return true;
}

void GroupEvents::OnCollective(const Communicator& communicator, cudaStream_t stream, int depth,
                               CollectiveOperation& operation) {
  if (!Begin(communicator, depth, operation.events)) return;
  if ((operation.events.mask & kCollApiEvents) == 0) return;
  auto event = Event(ncclProfileCollApi, handle_);
  event.collApi.func = Name(operation.collective).data();
  event.collApi.count = operation.count;
  event.collApi.datatype = NcclName(operation.data_type).data();
  event.collApi.root = operation.root;
  event.collApi.stream = stream;
  event.collApi.userTag = operation.events.user_tag;
  operation.events.api = communicator.profiler()->Start(event);
  communicator.profiler()->Stop(operation.events.api);
}

void GroupEvents::OnTransfer(const Communicator& communicator, cudaStream_t stream, int depth, bool sends,
                             Transfer& transfer) {
  if (!Begin(communicator, depth, transfer.events)) return;
  if ((transfer.events.mask & kP2pApiEvents) == 0) return;
  auto event = Event(ncclProfileP2pApi, handle_);
  event.p2pApi.func = TransferName(sends);
  event.p2pApi.count = Elements(transfer);
  event.p2pApi.datatype = NcclName(transfer.data_type).data();
  event.p2pApi.stream = stream;
  event.p2pApi.userTag = transfer.events.user_tag;
  transfer.events.api = communicator.profiler()->Start(event);
  communicator.profiler()->Stop(transfer.events.api);
}

void GroupEvents::EndBegins() {
  if (session_ != nullptr) session_->Record(handle_, ncclProfilerGroupEndApiStart);
}

LaunchEvents::LaunchEvents(CommunicatorPlan& plan, cudaStream_t stream) {
  const Communicator& communicator = *plan.communicator;
  // As in NCCL, the calls of a communicator with one rank are copies and have no events.
  if (communicator.profiler() == nullptr || communicator.n_ranks() == 1) return;
  session_ = communicator.profiler();
  rank_ = communicator.rank();
  int mask = 0;
  void* group_api = nullptr;
  const auto note = [&](const TaskEvents& events) {
    mask |= events.mask;
    if (group_api == nullptr) group_api = events.group_api;
  };
  for (const CollectiveOperation& operation : plan.collectives) note(operation.events);
  for (const Transfer& transfer : plan.sends) note(transfer.events);
  for (const Transfer& transfer : plan.receives) note(transfer.events);
  StartLaunch(mask, group_api, stream);
  for (CollectiveOperation& operation : plan.collectives) StartCollective(operation);
  for (Transfer& transfer : plan.sends) StartTransfer(transfer, true);
  for (Transfer& transfer : plan.receives) StartTransfer(transfer, false);
}

void LaunchEvents::StartLaunch(int mask, void* group_api, cudaStream_t stream) {
  if ((mask & ncclProfileKernelLaunch) != 0) {
    auto event = Event(ncclProfileKernelLaunch, group_api);
    event.kernelLaunch.stream = stream;
    launch_ = session_->Start(event);
  }
  if ((mask & kGroupEvents) != 0) group_ = session_->Start(Event(ncclProfileGroup, nullptr));
}

void LaunchEvents::StartCollective(CollectiveOperation& operation) {
  // The collective is counted even if no event is sent, so that the numbers stay equal on all ranks.
  const uint64_t sequence = session_->NextSequence(operation.collective);
  if ((operation.events.mask & kCollEvents) == 0) return;
  auto event = Event(ncclProfileColl, operation.events.api);
  event.coll.parentGroup = group_;
  event.coll.seqNumber = sequence;
  event.coll.func = Name(operation.collective).data();
  event.coll.sendBuff = operation.send;
  event.coll.recvBuff = operation.recv;
  event.coll.count = operation.count;
  event.coll.root = operation.root;
  event.coll.datatype = NcclName(operation.data_type).data();
  event.coll.nChannels = operation.config.channels;
  event.coll.nWarps = kWarps;
  event.coll.algo = LogName(operation.config.algorithm).data();
  event.coll.proto = LogName(operation.config.protocol).data();
  event.coll.kernelVariant = "";
  event.coll.userTag = operation.events.user_tag;
  operation.events.task = session_->Start(event);
  tasks_.push_back(operation.events.task);
}

void LaunchEvents::StartTransfer(Transfer& transfer, bool sends) {
  if ((transfer.events.mask & kP2pEvents) == 0) return;
  auto event = Event(ncclProfileP2p, transfer.events.api);
  event.p2p.parentGroup = group_;
  event.p2p.func = TransferName(sends);
  event.p2p.buff = transfer.buffer;
  event.p2p.datatype = NcclName(transfer.data_type).data();
  event.p2p.count = Elements(transfer);
  event.p2p.peer = transfer.peer;
  // Data that a rank sends to itself use no channel.
  event.p2p.nChannels = transfer.peer == rank_ ? 0 : 1;
  event.p2p.userTag = transfer.events.user_tag;
  transfer.events.task = session_->Start(event);
  tasks_.push_back(transfer.events.task);
}

LaunchEvents::~LaunchEvents() {
  if (session_ == nullptr) return;
  session_->Stop(launch_);
  for (void* task : tasks_) session_->Stop(task);
  session_->Stop(group_);
}

void KernelChannelEvent::Start(const ProfilerSession* session, const TaskEvents& events, int channel) {
  session_ = session;
  channel_ = channel;
  phases_ = (events.mask & ncclProfileKernelPhase) != 0;
  begin_ns_ = MonotonicNanoseconds();
  first_piece_ns_ = last_piece_ns_ = 0;
  handle_ = nullptr;
  if ((events.mask & ncclProfileKernelCh) == 0) return;
  auto event = Event(ncclProfileKernelCh, events.task);
  event.kernelCh.channelId = static_cast<uint8_t>(channel);
  event.kernelCh.pTimer = static_cast<uint64_t>(begin_ns_);
  handle_ = session->Start(event);
}

void KernelChannelEvent::StampPiece() {
  if (!phases_) return;
  last_piece_ns_ = MonotonicNanoseconds();
  if (first_piece_ns_ == 0) first_piece_ns_ = last_piece_ns_;
}

void KernelChannelEvent::SendPhase(int phase, int64_t begin_ns, int64_t end_ns) const {
  auto event = Event(ncclProfileKernelPhase, handle_);
  event.kernelPhase.channelId = static_cast<uint8_t>(channel_);
  event.kernelPhase.phaseId = static_cast<uint8_t>(phase);
  event.kernelPhase.phaseName = kPhaseNames[phase];
  event.kernelPhase.pTimer = static_cast<uint64_t>(begin_ns);
  void* const handle = session_->Start(event);
  session_->RecordTime(handle, ncclProfilerKernelPhaseStop, end_ns);
  session_->Stop(handle);
}

void KernelChannelEvent::Stop() {
  const int64_t end_ns = MonotonicNanoseconds();
  if (phases_) {
    const int64_t first = first_piece_ns_ == 0 ? end_ns : first_piece_ns_;
    const int64_t last = last_piece_ns_ == 0 ? end_ns : last_piece_ns_;
    SendPhase(0, begin_ns_, first);
    SendPhase(1, first, last);
    SendPhase(2, last, end_ns);
  }
  session_->RecordTime(handle_, ncclProfilerKernelChStop, end_ns);
  session_->Stop(handle_);
  session_ = nullptr;
}

}  // namespace dynamiccl::hostccl
