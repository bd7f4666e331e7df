// SPDX-License-Identifier: Apache-2.0
// Runs a launch on the calling thread (RunInline) or enqueues it on the first of its streams; the other
// streams wait for that one. RunAfterLast keeps the launches of a communicator in order.
#include "src/hostccl/dispatch.h"

#include <utility>

namespace dynamiccl::hostccl {
namespace {

// In bytes of traffic (see Traffic). A call up to this size takes less time than waking the stream's thread
// and waiting for it.
constexpr uint64_t kInlineBytes = 32 << 10;

// A launch and the plans that it runs. The caller that started the launch and the stream that ends it share
// this object.
struct OwnedLaunch {
  explicit OwnedLaunch(std::vector<CommunicatorPlan> given) : plans(std::move(given)), launch(plans) {}

  const std::vector<CommunicatorPlan> plans;
  Launch launch;
};

// Returns true if the calling thread may run the launch itself: the calls of one communicator, with few
// bytes.
bool FitsInline(const std::vector<CommunicatorPlan>& plans) {
  if (plans.size() != 1) return false;
  const CommunicatorPlan& plan = plans.front();
  uint64_t bytes = 0;
  for (const CollectiveOperation& operation : plan.collectives) {
    bytes += Traffic(operation, plan.communicator->n_ranks());
  }
  for (const Transfer& transfer : plan.sends) bytes += transfer.bytes;
  for (const Transfer& transfer : plan.receives) bytes += transfer.bytes;
  return FitsInline(*plan.communicator, bytes);
}

// Runs the plan on the calling thread. If a peer is late, the stream's thread finishes the plan. If the
// stream or the communicator is busy, this does nothing and returns false.
bool RunInline(HostStream& stream, std::vector<CommunicatorPlan>& plans) {
  const std::shared_ptr<Communicator> communicator = plans.front().communicator;
  const std::lock_guard lock(communicator->launch_mutex());
  auto& last = communicator->last_launch();
  if (!ClaimAfterLast(stream, *communicator)) return false;
  auto owned = std::make_shared<OwnedLaunch>(std::move(plans));
  if (const auto result = owned->launch.RunBriefly()) {
    communicator->inline_gauge().NoteDone();
    last = {};
    stream.Release(*result);
    return true;
  }
  communicator->inline_gauge().NoteGivenUp();
  auto done = std::make_shared<Completion>();
  last = {done, &stream, true};
  stream.HandOver([owned = std::move(owned), done] {
    const ncclResult_t result = owned->launch.Run();
    done->Complete(result);
    return result;
  });
  return true;
}

}  // namespace

uint64_t Traffic(const CollectiveOperation& operation, int n_ranks) {
  const uint64_t bytes =
      TotalBytes(operation.collective, operation.count, ElementBytes(operation.data_type), n_ranks);
  return operation.collective == Collective::kAllReduce ? 2 * bytes : bytes;
}

bool FitsInline(const Communicator& communicator, uint64_t bytes) {
  return communicator.settings().inline_calls && communicator.config().blocking != 0 && bytes <= kInlineBytes;
}

// The communicator's last launch may be a small one that the stream's thread is about to end. The caller then
// waits briefly for the end of that launch and can run the call inline. If the caller enqueued the call, all
// its later calls would wait for the stream's thread too.
bool ClaimAfterLast(HostStream& stream, Communicator& communicator) {
  const auto& last = communicator.last_launch();
  if (last.completion == nullptr) return communicator.inline_gauge().Try() && stream.TryClaim();
  if (!last.completion->done() && !last.brief) return false;
  if (!communicator.inline_gauge().Try()) return false;
  if (last.completion->done()) return stream.TryClaim();
  if (last.stream != &stream) return false;
  if (last.completion->WaitBriefly(kInlinePatienceNs) && stream.ClaimSoon(kInlinePatienceNs)) return true;
  communicator.inline_gauge().NoteGivenUp();
  return false;
}

void RunAfterLast(HostStream& main, Communicator& communicator, const std::shared_ptr<Completion>& done,
                  bool brief) {
  const std::lock_guard lock(communicator.launch_mutex());
  auto& last = communicator.last_launch();
  if (last.completion != nullptr && last.stream != &main && !last.completion->done()) {
    main.WaitFor(last.completion);
  }
  last = {done, &main, brief};
}

ncclResult_t Dispatch(LaunchDraft draft) {
  std::vector<std::shared_ptr<HostStream>> streams;
  for (cudaStream_t handle : draft.streams) {
    streams.push_back(FindStream(handle));
    if (streams.back() == nullptr) return ncclInvalidArgument;
  }
  HostStream& main = *streams.front();
  const bool brief = streams.size() == 1 && FitsInline(draft.plans);
  if (brief && RunInline(main, draft.plans)) return ncclSuccess;
  for (size_t i = 1; i < streams.size(); ++i) main.WaitFor(streams[i]->Record());
  auto done = std::make_shared<Completion>();
  for (const CommunicatorPlan& plan : draft.plans) RunAfterLast(main, *plan.communicator, done, brief);
  main.Enqueue([plans = std::make_shared<std::vector<CommunicatorPlan>>(std::move(draft.plans)), done] {
    const ncclResult_t result = RunLaunch(*plans);
    done->Complete(result);
    return result;
  });
  for (size_t i = 1; i < streams.size(); ++i) streams[i]->WaitFor(done);
  return ncclSuccess;
}

}  // namespace dynamiccl::hostccl
