// SPDX-License-Identifier: Apache-2.0
// Splits the job's communicator into the planned ones and issues groups in the order of the plan. Two marks
// in the stream enclose each group.
#include "tools/replay/replay_session.h"

#include <algorithm>
#include <thread>

#include "src/base/clock.h"
#include "tools/bench/data_check.h"
#include "tools/report/timing.h"

namespace dynamiccl {
namespace {

// Says how long a rank waits for the others when it connects. Ranks usually start within 1 s of each other; a
// machine under load needs longer.
constexpr std::chrono::seconds kMeetTimeout{30};
// Calls of one group follow one another in the buffers at multiples of this many bytes, so that no two share
// a cache line.
constexpr size_t kAlignment = 512;

// Returns the bytes that one call occupies in a buffer: enough for what it sends and what it receives.
size_t RoomOf(const CollectiveCall& call) {
  return (call.bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Returns whether every rank can compute the right result by itself, which holds only for collectives.
bool Checkable(const CollectiveCall& call) {
  return call.collective < Collective::kSendRecv;
}

CheckedCall CheckOf(const TraceCall& call, int32_t n_ranks) {
  const CollectiveCall& c = call.issued.call;
  return {static_cast<TestedCollective>(c.collective),
          CountArgument(c, n_ranks),
          c.data_type,
          c.op,
          std::max(call.issued.root_or_peer, 0),
          n_ranks};
}

// Returns whether a pass over the plan is timed. If there are several passes, the first one is not.
bool IsTimed(int pass, int passes) {
  return pass > 0 || passes == 1;
}

void SleepUntil(int64_t monotonic_ns) {
  const int64_t left = monotonic_ns - MonotonicNanoseconds();
  if (left > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left));
}

}  // namespace

Result<std::unique_ptr<ReplaySession>> ReplaySession::Open() {
  DYNAMICCL_TRY(const RankPlace place, RankPlaceFromEnvironment());
  DYNAMICCL_TRY(NcclLibrary library, NcclLibrary::Open());
  std::unique_ptr<ReplaySession> session(new ReplaySession(std::move(library), place));
  DYNAMICCL_CHECK_OK(session->Start());
  return session;
}

// Does the part of Open that can fail: opens the device, exchanges the unique id and creates the
// communicator.
Status ReplaySession::Start() {
  const NcclFunctionTable& nccl = library_.functions();
  // The device comes before the communicator: NCCL takes the GPU that is current.
  DYNAMICCL_TRY(device_, OpenDevice(library_, place_));
  ncclUniqueId id{};
  if (place_.rank == 0) DYNAMICCL_CHECK_OK(library_.Check(nccl.GetUniqueId(&id), "ncclGetUniqueId"));
  DYNAMICCL_TRY(id, ExchangeUniqueId(place_, id, kMeetTimeout));
  return library_.Check(nccl.CommInitRank(&job_, place_.n_ranks, id, place_.rank), "ncclCommInitRank");
}

ReplaySession::~ReplaySession() {
  for (Lane& lane : lanes_) {
    if (lane.communicator != nullptr) library_.functions().CommDestroy(lane.communicator);
  }
  if (job_ != nullptr) library_.functions().CommDestroy(job_);
}

Status ReplaySession::CreateLanes(const ReplayPlan& plan) {
  for (const ReplayCommunicator& wanted : plan.communicators) {
    Lane& lane = lanes_.emplace_back();
    lane.n_ranks = wanted.n_ranks;
    lane.rank = wanted.key;
    const int color = wanted.color < 0 ? NCCL_SPLIT_NOCOLOR : wanted.color;
    DYNAMICCL_CHECK_OK(
        library_.Check(library_.functions().CommSplit(job_, color, wanted.key, &lane.communicator, nullptr),
                       "ncclCommSplit", job_));
    if (wanted.color < 0) continue;
    DYNAMICCL_TRY(lane.device, OpenDevice(library_, place_));
  }
  return {};
}

// Allocates buffers for each communicator, large enough for its largest group of calls.
Status ReplaySession::AllocateBuffers(const ReplayPlan& plan) {
  std::vector<size_t> room(lanes_.size(), 0);
  for (const ReplayGroup& group : plan.groups) {
    size_t bytes = 0;
    for (const TraceCall& call : group.calls) bytes += RoomOf(call.issued.call);
    room[group.communicator] = std::max(room[group.communicator], bytes);
  }
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (room[i] == 0) continue;
    DYNAMICCL_TRY(lanes_[i].send, lanes_[i].device->Allocate(room[i]));
    DYNAMICCL_TRY(lanes_[i].receive, lanes_[i].device->Allocate(room[i]));
  }
  return {};
}

Result<ReplayResult> ReplaySession::Run(const ReplayPlan& plan, const ReplayOptions& options) {
  ReplayResult result;
  DYNAMICCL_CHECK_OK(CreateLanes(plan));
  DYNAMICCL_CHECK_OK(AllocateBuffers(plan));
  std::vector<double> walls;
  for (int pass = 0; pass < options.passes; ++pass) {
    const int64_t start = MonotonicNanoseconds();
    DYNAMICCL_CHECK_OK(IssuePlan(plan, options, result));
    DYNAMICCL_CHECK_OK(Synchronize());
    if (IsTimed(pass, options.passes))
      walls.push_back(static_cast<double>(MonotonicNanoseconds() - start) * 1e-3);
  }
  result.wall_us = Summarize(std::move(walls)).median;
  DYNAMICCL_CHECK_OK(CollectTimes(plan, options.passes, result));
  return result;
}

Status ReplaySession::IssuePlan(const ReplayPlan& plan, const ReplayOptions& options, ReplayResult& result) {
  const int64_t start = MonotonicNanoseconds();
  for (const ReplayGroup& group : plan.groups) {
    Lane& lane = lanes_[group.communicator];
    const int64_t recorded =
        group.calls.front().issued.issued_ns - plan.groups.front().calls.front().issued.issued_ns;
    if (options.paced) SleepUntil(start + recorded);
    if (options.check) DYNAMICCL_CHECK_OK(FillGroup(lane, group));
    DYNAMICCL_CHECK_OK(lane.device->Mark());
    DYNAMICCL_CHECK_OK(IssueGroup(lane, group));
    DYNAMICCL_CHECK_OK(lane.device->Mark());
    if (options.check) DYNAMICCL_CHECK_OK(CheckGroup(lane, group, result));
  }
  return {};
}

Status ReplaySession::Synchronize() {
  for (Lane& lane : lanes_) {
    if (lane.device != nullptr) DYNAMICCL_CHECK_OK(lane.device->Synchronize());
  }
  return {};
}

Status ReplaySession::IssueGroup(Lane& lane, const ReplayGroup& group) {
  const NcclFunctionTable& nccl = library_.functions();
  const bool grouped = group.calls.size() > 1 || IsExchange(group.calls.front().issued.call.collective);
  if (grouped) DYNAMICCL_CHECK_OK(library_.Check(nccl.GroupStart(), "ncclGroupStart"));
  size_t offset = 0;
  for (const TraceCall& call : group.calls) {
    DYNAMICCL_CHECK_OK(IssueCall(lane, call, offset));
    offset += RoomOf(call.issued.call);
  }
  if (grouped) DYNAMICCL_CHECK_OK(library_.Check(nccl.GroupEnd(), "ncclGroupEnd"));
  return {};
}

Status ReplaySession::IssueCall(Lane& lane, const TraceCall& call, size_t offset) {
  const NcclFunctionTable& nccl = library_.functions();
  const CollectiveCall& c = call.issued.call;
  const uint64_t count = CountArgument(c, lane.n_ranks);
  const auto type = static_cast<ncclDataType_t>(c.data_type);
  const auto op = static_cast<ncclRedOp_t>(c.op);
  const int root = std::max(call.issued.root_or_peer, 0);
  const cudaStream_t stream = lane.device->stream();
  std::byte* const send = lane.send + offset;
  std::byte* const receive = lane.receive + offset;
  ncclResult_t result = ncclInvalidArgument;
  switch (c.collective) {
    case Collective::kAllReduce:
      result = nccl.AllReduce(send, receive, count, type, op, lane.communicator, stream);
      break;
    case Collective::kAllGather:
      result = nccl.AllGather(send, receive, count, type, lane.communicator, stream);
      break;
    case Collective::kReduceScatter:
      result = nccl.ReduceScatter(send, receive, count, type, op, lane.communicator, stream);
      break;
    case Collective::kBroadcast:
      result = nccl.Broadcast(send, receive, count, type, root, lane.communicator, stream);
      break;
    case Collective::kReduce:
      result = nccl.Reduce(send, receive, count, type, op, root, lane.communicator, stream);
      break;
    case Collective::kSend:
      result = nccl.Send(send, count, type, root, lane.communicator, stream);
      break;
    case Collective::kRecv:
      result = nccl.Recv(receive, count, type, root, lane.communicator, stream);
      break;
    case Collective::kSendRecv:
    case Collective::kAllToAll:
    case Collective::kScatter:
    case Collective::kGather:
      return IssueAllToAll(lane, c, offset);
  }
  return library_.Check(result, Name(c.collective).data(), lane.communicator);
}

// Sends equal parts to every rank, since a trace has only the total of an all-to-all. Scatter and Gather are
// replayed like this too, because imported traces do not tell their root.
Status ReplaySession::IssueAllToAll(Lane& lane, const CollectiveCall& call, size_t offset) {
  const NcclFunctionTable& nccl = library_.functions();
  const uint64_t count = CountArgument(call, lane.n_ranks);
  const auto type = static_cast<ncclDataType_t>(call.data_type);
  for (int peer = 0; peer < lane.n_ranks; ++peer) {
    const size_t part = offset + static_cast<size_t>(peer) * count * ElementBytes(call.data_type);
    DYNAMICCL_CHECK_OK(library_.Check(
        nccl.Send(lane.send + part, count, type, peer, lane.communicator, lane.device->stream()), "ncclSend",
        lane.communicator));
    DYNAMICCL_CHECK_OK(library_.Check(
        nccl.Recv(lane.receive + part, count, type, peer, lane.communicator, lane.device->stream()),
        "ncclRecv", lane.communicator));
  }
  return {};
}

Status ReplaySession::FillGroup(Lane& lane, const ReplayGroup& group) {
  size_t offset = 0;
  for (const TraceCall& call : group.calls) {
    if (Checkable(call.issued.call)) {
      DYNAMICCL_CHECK_OK(lane.device->FillInput(CheckOf(call, lane.n_ranks), lane.rank, lane.send + offset));
    }
    offset += RoomOf(call.issued.call);
  }
  return {};
}

Status ReplaySession::CheckGroup(Lane& lane, const ReplayGroup& group, ReplayResult& result) {
  DYNAMICCL_CHECK_OK(lane.device->Synchronize());
  size_t offset = 0;
  for (const TraceCall& call : group.calls) {
    if (Checkable(call.issued.call)) {
      const CheckedCall check = CheckOf(call, lane.n_ranks);
      DYNAMICCL_TRY(const uint64_t wrong, lane.device->CountWrong(check, lane.rank, lane.receive + offset));
      result.checked += ReceiveCount(check);
      result.wrong += wrong;
    }
    offset += RoomOf(call.issued.call);
  }
  return {};
}

// Reads the times of all groups. Each group has two marks, so every other interval is a group and the others
// are gaps.
Status ReplaySession::CollectTimes(const ReplayPlan& plan, int passes, ReplayResult& result) {
  std::vector<std::vector<double>> intervals(lanes_.size());
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].device == nullptr) continue;
    DYNAMICCL_TRY(intervals[i], lanes_[i].device->Intervals());
  }
  std::vector<size_t> next(lanes_.size(), 0);
  std::vector<std::vector<double>> times(plan.groups.size());
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t i = 0; i < plan.groups.size(); ++i) {
      const size_t lane = plan.groups[i].communicator;
      if (IsTimed(pass, passes)) times[i].push_back(intervals[lane].at(next[lane]));
      next[lane] += 2;
    }
  }
  for (std::vector<double>& of_group : times)
    result.group_us.push_back(Summarize(std::move(of_group)).median);
  return {};
}

}  // namespace dynamiccl
