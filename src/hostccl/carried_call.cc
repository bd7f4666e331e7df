// SPDX-License-Identifier: Apache-2.0
// Says which calls have a cached plan, and how a call runs by its plan. If peers are late, the call becomes a
// Launch with a single lane (CarriedLane), which waits, notices failures and times out like every other
// launch.
#include "src/hostccl/carried_call.h"

#include <utility>

#include "src/base/fail_point.h"
#include "src/hostccl/channel_lane.h"
#include "src/hostccl/dispatch.h"
#include "src/hostccl/progress_wait.h"

namespace dynamiccl::hostccl {
namespace {

bool HasOnePass(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kAllGather;
}

RepeatedCall CallOf(const CollectiveOperation& operation) {
  return {operation.collective, operation.data_type, operation.op, operation.count};
}

// Fills in the elements of a block that each channel carries. They are the same as in a call without a cached
// plan.
void CutShares(CachedPlan& plan) {
  const int channels = plan.config.channels;
  for (; plan.n_shares < channels; ++plan.n_shares) {
    const Chunk share =
        ShareOfChannel(plan.call.count, plan.reduction.element_bytes, channels, plan.n_shares);
    if (share.count == 0) return;
    plan.shares[static_cast<size_t>(plan.n_shares)] = share;
  }
}

CarriedPart PartOf(const CachedPlan& plan, int channel) {
  const Chunk& share = plan.shares[static_cast<size_t>(channel)];
  return {.collective = plan.call.collective,
          .element_bytes = plan.reduction.element_bytes,
          .block_count = plan.call.count,
          .begin = share.offset,
          .count = share.count};
}

// Returns true if every channel's data are few enough to travel with the announcement and no link is
// emulated.
bool IsCarried(Communicator& communicator, const CachedPlan& plan) {
  for (int channel = 0; channel < plan.n_shares; ++channel) {
    const NodeExchange& node = communicator.node_exchange(channel);
    const size_t bytes = ParcelBytes(PartOf(plan, channel), communicator.n_ranks());
    if (node.shaped() || !node.Carries(bytes)) return false;
  }
  return plan.n_shares > 0;
}

// Returns the result of a call that has ended, as Launch::Run does.
ncclResult_t ResultOf(const Communicator& communicator) {
  PassFailPoint(FailPoint::kLaunchEnd);
  return communicator.health();
}

// Announces the call and waits for peers for at most `patience_ns` nanoseconds. Returns nothing if a peer is
// late. After a failure or an interruption it announces nothing, as a Launch does.
std::optional<ncclResult_t> RunBriefly(CarriedCall& call, int64_t patience_ns) {
  if (const ncclResult_t health = call.communicator().health(); health != ncclSuccess) return health;
  PassFailPoint(FailPoint::kLaunchBegin);
  call.Announce();
  PassFailPoint(FailPoint::kLaunchMoving);
  ProgressWait wait(call.plan().may_spin, patience_ns);
  bool arrived = call.Arrived();
  while (!arrived && wait.Spin()) arrived = call.Arrived();
  if (arrived) call.Finish();
  call.WakePeers();
  if (arrived) return ResultOf(call.communicator());
  while (!call.Arrived()) {
    if (wait.Idle(kNotPosted) == ProgressWait::Next::kSleep) return {};
  }
  call.Finish();
  return ResultOf(call.communicator());
}

// Finishes an announced call as the lane of a launch.
class CarriedLane final : public LaunchLane {
 public:
  explicit CarriedLane(const CarriedCall& call) : call_(call) {}

  bool Poll() override {
    if (done_ || !call_.Arrived()) return false;
    call_.Finish();
    return done_ = true;
  }
  bool done() const override { return done_; }
  int peer() const override { return -1; }
  int64_t next_arrival_ns() const override { return kNotPosted; }

 private:
  CarriedCall call_;
  bool done_ = false;
};

// An announced call that waits for a late peer. The object keeps the communicator alive. It has its own copy
// of the cached plan, because the communicator may replace the plan in its cache during the wait.
class LateCall {
 public:
  LateCall(std::shared_ptr<Communicator> communicator, const CarriedCall& call)
      : plan_copy_(call.plan()),
        plan_{.communicator = std::move(communicator)},
        launch_(plan_, call.launch_number(), std::make_unique<CarriedLane>(call.With(plan_copy_))) {}
  LateCall(const LateCall&) = delete;
  LateCall& operator=(const LateCall&) = delete;

  ncclResult_t Run() { return launch_.Run(); }

 private:
  const CachedPlan plan_copy_;
  const CommunicatorPlan plan_;
  Launch launch_;
};

// Runs the call on a stream that this thread has claimed. If a peer is late, the stream's thread finishes the
// call.
void RunClaimed(const std::shared_ptr<Communicator>& communicator, CarriedCall& call, HostStream& stream) {
  auto& last = communicator->last_launch();
  if (const auto result = RunBriefly(call, InlinePatienceNs(call.plan().may_spin))) {
    communicator->inline_gauge().NoteDone();
    if (last.completion != nullptr) last = {};
    return stream.Release(*result);
  }
  communicator->inline_gauge().NoteGivenUp();
  auto late = std::make_shared<LateCall>(communicator, call);
  auto done = std::make_shared<Completion>();
  last = {done, &stream, true};
  stream.HandOver([late = std::move(late), done] {
    const ncclResult_t result = late->Run();
    done->Complete(result);
    return result;
  });
}

// Runs a queued call on the stream's thread.
ncclResult_t RunQueued(const std::shared_ptr<Communicator>& communicator, CarriedCall& call) {
  if (const auto result = RunBriefly(call, kYieldNs)) return *result;
  return LateCall(communicator, call).Run();
}

}  // namespace

template <typename Visit>
void CarriedCall::ForEachPart(Visit visit) const {
  for (int channel = 0; channel < plan_->n_shares; ++channel) {
    CarriedPart part = PartOf(*plan_, channel);
    part.send = send_;
    part.recv = recv_;
    visit(communicator_->node_exchange(channel), part);
  }
}

void CarriedCall::Announce() {
  launch_number_ = communicator_->BeginCollectiveLaunch();
  ForEachPart([](NodeExchange& node, const CarriedPart& part) {
    FillParcel(node, part);
    node.PostParcel({});
  });
}

// Waking the peers through one channel is enough, because all channels have the same members.
void CarriedCall::WakePeers() {
  communicator_->node_exchange(0).RingPeers();
}

bool CarriedCall::Arrived() const {
  for (int channel = 0; channel < plan_->n_shares; ++channel) {
    if (!communicator_->node_exchange(channel).AllCarried()) return false;
  }
  return true;
}

void CarriedCall::Finish() {
  ForEachPart(
      [&](NodeExchange& node, const CarriedPart& part) { TakeParcels(node, part, plan_->reduction); });
  communicator_->CompleteCollectiveLaunch(launch_number_);
}

const CachedPlan* PlanInCache(Communicator& communicator, const CollectiveOperation& operation) {
  PlanCache& plans = communicator.plan_cache();
  const RepeatedCall call = CallOf(operation);
  const CachedPlan* const known = operation.multiplier ? nullptr : plans.Find(call);
  if (known != nullptr && known->config == operation.config && known->chunk_bytes == operation.chunk_bytes) {
    return known;
  }
  const bool one_pass = operation.config.algorithm == Algorithm::kNvls && HasOnePass(operation.collective);
  if (!one_pass || operation.multiplier || communicator.settings().rank_order) return nullptr;
  CachedPlan plan{.call = call,
                  .config = operation.config,
                  .chunk_bytes = operation.chunk_bytes,
                  .reduction = FindReduction(call.data_type, call.op, communicator.n_ranks()),
                  .may_spin = communicator.may_spin(),
                  .may_run_inline = FitsInline(communicator, Traffic(operation, communicator.n_ranks()))};
  CutShares(plan);
  return IsCarried(communicator, plan) ? &plans.Keep(plan) : nullptr;
}

void RunCached(const std::shared_ptr<Communicator>& communicator, const CachedPlan& plan,
               const std::byte* send, std::byte* recv, HostStream& stream) {
  communicator->plan_cache().NoteRun();
  const bool brief = plan.may_run_inline;
  if (brief) {
    const std::lock_guard lock(communicator->launch_mutex());
    CarriedCall call(*communicator, plan, send, recv);
    if (ClaimAfterLast(stream, *communicator)) return RunClaimed(communicator, call, stream);
  }
  auto done = std::make_shared<Completion>();
  RunAfterLast(stream, *communicator, done, brief);
  stream.Enqueue([communicator, plan, send, recv, done] {
    CarriedCall call(*communicator, plan, send, recv);
    const ncclResult_t result = RunQueued(communicator, call);
    done->Complete(result);
    return result;
  });
}

}  // namespace dynamiccl::hostccl
