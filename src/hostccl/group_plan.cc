// SPDX-License-Identifier: Apache-2.0
// Plans the calls of a group and starts them:
// - Drafts collects the calls into launches, one for each set of related streams and communicators.
// - ChooseConfigs sorts and merges the calls of each communicator and asks the planner.
// - Dispatch (dispatch.h) runs each launch.
#include "src/hostccl/group_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "src/hostccl/carried_call.h"
#include "src/hostccl/chunk_size.h"
#include "src/hostccl/debug_log.h"
#include "src/hostccl/dispatch.h"
#include "src/nccl_abi/host_stream.h"

namespace dynamiccl::hostccl {
namespace {

// Calls are merged only if they have the same bin: collective, operator and data type.
auto Bin(const CollectiveOperation& operation) {
  return std::tuple(operation.collective, operation.op, operation.data_type,
                    operation.multiplier.has_value());
}

// Collects calls into drafts, and merges drafts that share a stream or a communicator.
class Drafts {
 public:
  // Returns the plan for a call on this communicator and stream. The reference is valid until the next call
  // of this function.
  CommunicatorPlan& PlanFor(const std::shared_ptr<Communicator>& communicator, cudaStream_t stream) {
    LaunchDraft* target = nullptr;
    for (auto draft = drafts_.begin(); draft != drafts_.end();) {
      const bool related =
          PlanOf(*draft, communicator) != nullptr ||
          std::find(draft->streams.begin(), draft->streams.end(), stream) != draft->streams.end();
      if (related && target != nullptr) {
        std::move(draft->plans.begin(), draft->plans.end(), std::back_inserter(target->plans));
        target->streams.insert(target->streams.end(), draft->streams.begin(), draft->streams.end());
        draft = drafts_.erase(draft);
        continue;
      }
      if (related) target = &*draft;
      ++draft;
    }
    if (target == nullptr) target = &drafts_.emplace_back();
    if (std::find(target->streams.begin(), target->streams.end(), stream) == target->streams.end()) {
      target->streams.push_back(stream);
    }
    if (CommunicatorPlan* const plan = PlanOf(*target, communicator)) return *plan;
    CommunicatorPlan& plan = target->plans.emplace_back();
    plan.communicator = communicator;
    return plan;
  }

  std::vector<LaunchDraft>& all() { return drafts_; }

 private:
  static CommunicatorPlan* PlanOf(LaunchDraft& draft, const std::shared_ptr<Communicator>& communicator) {
    const auto found =
        std::find_if(draft.plans.begin(), draft.plans.end(),
                     [&](const CommunicatorPlan& plan) { return plan.communicator == communicator; });
    return found == draft.plans.end() ? nullptr : &*found;
  }

  std::vector<LaunchDraft> drafts_;
};

// Starts the profiler events of a launch. The events stop when the returned objects are destroyed, after the
// launch has been passed to its stream.
std::vector<LaunchEvents> StartEvents(LaunchDraft& draft) {
  std::vector<LaunchEvents> events;
  for (CommunicatorPlan& plan : draft.plans) {
    if (plan.communicator->profiler() != nullptr) events.emplace_back(plan, draft.streams.front());
  }
  return events;
}

// Returns true if all buffers of this rank that the call uses lie in shared windows (memory_api.cc).
bool LiesInWindows(const CollectiveOperation& operation, const Communicator& communicator) {
  const bool sends = operation.collective == Collective::kBroadcast || communicator.InWindow(operation.send);
  const bool receives = operation.collective == Collective::kReduce || communicator.InWindow(operation.recv);
  return sends && receives;
}

// Returns the chunk size of a call in bytes: that of NCCL's rule, unless the tuner plugin changes it.
PlanResult<size_t> ChunkBytes(Communicator& communicator, const CollectiveOperation& operation) {
  const int n_ranks = communicator.n_ranks();
  const uint64_t bytes =
      TotalBytes(operation.collective, operation.count, ElementBytes(operation.data_type), n_ranks);
  const size_t usual = DefaultChunkBytes({.collective = operation.collective,
                                          .config = operation.config,
                                          .bytes = bytes,
                                          .n_ranks = n_ranks,
                                          .n_nodes = communicator.info().n_nodes});
  return communicator.planner().ChunkBytes({operation.collective, bytes, operation.config, usual});
}

// Returns the end of the batch that begins with `first`. As in NCCL, neighbouring calls are merged if their
// traffic differs by less than a factor of four.
template <typename Iterator>
Iterator EndOfBatch(Iterator first, Iterator end, int n_ranks) {
  if (first->choice.isolated) return first + 1;
  return std::find_if(first, end, [&](const CollectiveOperation& other) {
    return other.choice.isolated || Bin(other) != Bin(*first) ||
           4 * Traffic(other, n_ranks) <= Traffic(*first, n_ranks);
  });
}

// Calls visit(batch, config, first, last) for each batch of merged calls of one communicator.
template <typename Visit>
ncclResult_t ForEachBatch(Communicator& communicator, std::span<CollectiveOperation> operations,
                          Visit visit) {
  const int n_ranks = communicator.n_ranks();
  const auto before = [&](const CollectiveOperation& a, const CollectiveOperation& b) {
    return Bin(a) != Bin(b) ? Bin(a) < Bin(b) : Traffic(a, n_ranks) > Traffic(b, n_ranks);
  };
  // Most groups have a single call, and sorting would allocate memory.
  if (operations.size() > 1) std::stable_sort(operations.begin(), operations.end(), before);
  const int channels = communicator.planner().channels();
  const int pipe_ops = (static_cast<int>(operations.size()) + channels - 1) / channels;
  for (auto first = operations.begin(); first != operations.end();) {
    const auto last = EndOfBatch(first, operations.end(), n_ranks);
    PlannedBatch batch{.collective = first->collective,
                       .n_pipe_ops = pipe_ops,
                       .data_type = first->data_type,
                       .op = first->op,
                       .choice = first->choice};
    batch.registered = std::all_of(first, last, [&](const CollectiveOperation& operation) {
      return LiesInWindows(operation, communicator);
    });
    for (auto it = first; it != last; ++it) {
      batch.bytes += TotalBytes(it->collective, it->count, ElementBytes(it->data_type), n_ranks);
    }
    const auto config = communicator.planner().Choose(batch);
    if (!config) return config.error().result;
    visit(batch, *config, first, last);
    first = last;
  }
  return ncclSuccess;
}

// The events that calls name in their ncclCollConfig_t are recorded before the launch, as NCCL does with CUDA
// before 12.3. A group may have at most one such event for each communicator.
class CallEvents {
 public:
  // `event` is null for a call without an event.
  ncclResult_t Record(cudaEvent_t event, const Communicator* communicator, cudaStream_t stream) {
    if (event == nullptr) return ncclSuccess;
    if (std::find(seen_.begin(), seen_.end(), communicator) != seen_.end()) {
      Warn("a group has more than one launchCompletionEvent on a communicator");
      return ncclInvalidUsage;
    }
    seen_.push_back(communicator);
    const ncclResult_t result = hostcclEventRecord(reinterpret_cast<hostcclEvent_t>(event), stream);
    if (result != ncclSuccess) Warn("launchCompletionEvent was not made by hostcclEventCreate");
    return result;
  }

 private:
  std::vector<const Communicator*> seen_;
};

// Records all events before the first launch, in the order of the calls.
ncclResult_t RecordCallEvents(const GroupCalls& calls) {
  CallEvents events;
  for (const PendingCollective& call : calls.collectives) {
    const ncclResult_t result =
        events.Record(call.operation.choice.launch_event, call.communicator.get(), call.stream);
    if (result != ncclSuccess) return result;
  }
  for (const PendingTransfer& call : calls.transfers) {
    const ncclResult_t result = events.Record(call.launch_event, call.communicator.get(), call.stream);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

// Returns the bytes of each of these transfers that has this rank as its peer, in order.
std::vector<size_t> BytesToSelf(const std::vector<Transfer>& transfers, int self) {
  std::vector<size_t> bytes;
  for (const Transfer& transfer : transfers) {
    if (transfer.peer == self) bytes.push_back(transfer.bytes);
  }
  return bytes;
}

// As in NCCL, every send of a rank to itself needs a receive in the same group, and the reverse. Nothing else
// would ever fill the buffer. NCCL demands equal sizes too, but copies as much as is sent, beyond the end of
// a shorter buffer; hostccl refuses the group.
ncclResult_t CheckSelfTransfers(const CommunicatorPlan& plan) {
  const int self = plan.communicator->rank();
  const std::vector<size_t> sends = BytesToSelf(plan.sends, self);
  const std::vector<size_t> receives = BytesToSelf(plan.receives, self);
  if (sends == receives) return ncclSuccess;
  if (sends.size() != receives.size()) {
    Warn("rank {} has {} sends to itself and {} receives from itself in a group", self, sends.size(),
         receives.size());
    return ncclInvalidUsage;
  }
  const auto [sent, received] = std::mismatch(sends.begin(), sends.end(), receives.begin());
  Warn(
      "rank {} sends {} bytes to itself where it receives {} from itself in a group: give both calls "
      "the same size",
      self, *sent, *received);
  return ncclInvalidUsage;
}

}  // namespace

// If a plugin returns an error on one call, the other calls are still planned; the error is returned at the
// end.
ncclResult_t ChooseConfigs(Communicator& communicator, std::span<CollectiveOperation> operations) {
  ncclResult_t refused = ncclSuccess;
  const auto choose = [&](const PlannedBatch&, const CollectiveConfig& config, auto first, auto last) {
    for (; first != last; ++first) {
      first->config = config;
      const auto chunk = ChunkBytes(communicator, *first);
      if (!chunk) refused = chunk.error().result;
      first->chunk_bytes = chunk.value_or(0);
      communicator.planner().LogScheduled(first->collective, first->count * ElementBytes(first->data_type),
                                          config);
    }
  };
  const ncclResult_t result = ForEachBatch(communicator, operations, choose);
  return result != ncclSuccess ? result : refused;
}

ncclResult_t EstimateGroup(const GroupCalls& calls, float& microseconds) {
  std::map<Communicator*, std::vector<CollectiveOperation>> operations;
  for (const PendingCollective& call : calls.collectives) {
    operations[call.communicator.get()].push_back(call.operation);
  }
  for (auto& [communicator, of_communicator] : operations) {
    float sum = 0;
    const auto add = [&sum, &planner = communicator->planner()](const PlannedBatch& batch,
                                                                const CollectiveConfig& config, auto, auto) {
      sum += planner.Microseconds(batch, config);
    };
    if (communicator->n_ranks() > 1) {
      const ncclResult_t result = ForEachBatch(*communicator, of_communicator, add);
      if (result != ncclSuccess) return result;
    }
    microseconds = std::max(microseconds, sum);
  }
  return ncclSuccess;
}

ncclResult_t LaunchAlone(PendingCollective call) {
  Communicator& communicator = *call.communicator;
  if (communicator.n_ranks() > 1) {
    const ncclResult_t result = ChooseConfigs(communicator, {&call.operation, 1});
    if (result != ncclSuccess) return result;
    if (const CachedPlan* const plan = PlanInCache(communicator, call.operation)) {
      const auto stream = FindStream(call.stream);
      if (stream == nullptr) return ncclInvalidArgument;
      RunCached(call.communicator, *plan, call.operation.send, call.operation.recv, *stream);
      return ncclSuccess;
    }
  }
  LaunchDraft draft;
  CommunicatorPlan& plan = draft.plans.emplace_back();
  plan.communicator = std::move(call.communicator);
  plan.collectives.push_back(std::move(call.operation));
  draft.streams.push_back(call.stream);
  return Dispatch(std::move(draft));
}

ncclResult_t LaunchGroup(GroupCalls calls) {
  Drafts drafts;
  for (PendingCollective& call : calls.collectives) {
    drafts.PlanFor(call.communicator, call.stream).collectives.push_back(call.operation);
  }
  for (PendingTransfer& call : calls.transfers) {
    CommunicatorPlan& plan = drafts.PlanFor(call.communicator, call.stream);
    (call.sends ? plan.sends : plan.receives).push_back(call.transfer);
  }
  for (LaunchDraft& draft : drafts.all()) {
    for (CommunicatorPlan& plan : draft.plans) {
      const ncclResult_t matched = CheckSelfTransfers(plan);
      if (matched != ncclSuccess) return matched;
      if (plan.communicator->n_ranks() == 1) continue;
      const ncclResult_t result = ChooseConfigs(*plan.communicator, plan.collectives);
      if (result != ncclSuccess) return result;
    }
  }
  const ncclResult_t recorded = RecordCallEvents(calls);
  if (recorded != ncclSuccess) return recorded;
  for (LaunchDraft& draft : drafts.all()) {
    const std::vector<LaunchEvents> events = StartEvents(draft);
    const ncclResult_t result = Dispatch(std::move(draft));
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

}  // namespace dynamiccl::hostccl
