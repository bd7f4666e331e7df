// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/group_plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace dynamiccl::hostccl {
namespace {

// Bytes that a call moves, as NCCL weighs them when it merges (enqueue.cc, ncclPrepareTasks): AllReduce
// passes twice.
uint64_t Traffic(const CollectiveOperation& operation, int n_ranks) {
  const uint64_t bytes =
      TotalBytes(operation.collective, operation.count, ElementBytes(operation.data_type), n_ranks);
  return operation.collective == Collective::kAllReduce ? 2 * bytes : bytes;
}

auto Bin(const CollectiveOperation& operation) {
  return std::tuple(operation.collective, operation.op, operation.data_type,
                    operation.multiplier.has_value());
}

// What one launch runs, on which stream, and the other streams that the user named for its calls.
struct LaunchDraft {
  std::map<Communicator*, CommunicatorPlan> plans;
  std::vector<cudaStream_t> streams;  // the first one runs it
};

// Collects calls into drafts; merges drafts that turn out to share a stream or a communicator.
class Drafts {
 public:
  CommunicatorPlan& PlanFor(const std::shared_ptr<Communicator>& communicator, cudaStream_t stream) {
    LaunchDraft* target = nullptr;
    for (auto draft = drafts_.begin(); draft != drafts_.end();) {
      const bool related =
          draft->plans.contains(communicator.get()) ||
          std::find(draft->streams.begin(), draft->streams.end(), stream) != draft->streams.end();
      if (related && target != nullptr) {
        target->plans.merge(draft->plans);
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
    CommunicatorPlan& plan = target->plans[communicator.get()];
    plan.communicator = communicator;
    return plan;
  }

  std::vector<LaunchDraft>& all() { return drafts_; }

 private:
  std::vector<LaunchDraft> drafts_;
};

ncclResult_t Enqueue(LaunchDraft draft) {
  std::vector<std::shared_ptr<HostStream>> streams;
  for (cudaStream_t handle : draft.streams) {
    streams.push_back(FindStream(handle));
    if (streams.back() == nullptr) return ncclInvalidArgument;
  }
  HostStream& main = *streams.front();
  for (size_t i = 1; i < streams.size(); ++i) main.WaitFor(streams[i]->Record());
  auto plans = std::make_shared<std::vector<CommunicatorPlan>>();
  for (auto& [communicator, plan] : draft.plans) {
    // Launches of a communicator run in order, whatever streams they are on.
    const auto& last = communicator->last_launch();
    if (last.completion != nullptr && last.stream != &main && !last.completion->done())
      main.WaitFor(last.completion);
    plans->push_back(std::move(plan));
  }
  auto done = std::make_shared<Completion>();
  for (const CommunicatorPlan& plan : *plans) plan.communicator->last_launch() = {done, &main};
  main.Enqueue([plans, done] {
    const ncclResult_t result = RunLaunch(*plans);
    done->Complete();
    return result;
  });
  for (size_t i = 1; i < streams.size(); ++i) streams[i]->WaitFor(done);
  return ncclSuccess;
}

}  // namespace

ncclResult_t ChooseConfigs(Communicator& communicator, std::vector<CollectiveOperation>& operations) {
  const int n_ranks = communicator.n_ranks();
  std::stable_sort(operations.begin(), operations.end(),
                   [&](const CollectiveOperation& a, const CollectiveOperation& b) {
                     return Bin(a) != Bin(b) ? Bin(a) < Bin(b) : Traffic(a, n_ranks) > Traffic(b, n_ranks);
                   });
  const int channels = communicator.planner().channels();
  const int pipe_ops = (static_cast<int>(operations.size()) + channels - 1) / channels;
  for (auto first = operations.begin(); first != operations.end();) {
    // NCCL merges neighbours whose traffic is within a factor of four.
    const auto last = std::find_if(first, operations.end(), [&](const CollectiveOperation& other) {
      return Bin(other) != Bin(*first) || 4 * Traffic(other, n_ranks) <= Traffic(*first, n_ranks);
    });
    PlannedBatch batch{.collective = first->collective,
                       .n_pipe_ops = pipe_ops,
                       .data_type = first->data_type,
                       .op = first->op};
    for (auto it = first; it != last; ++it) {
      batch.bytes += TotalBytes(it->collective, it->count, ElementBytes(it->data_type), n_ranks);
    }
    const auto config = communicator.planner().Choose(batch);
    if (!config) return config.error().result;
    for (; first != last; ++first) {
      first->config = *config;
      communicator.planner().LogScheduled(first->collective, first->count * ElementBytes(first->data_type),
                                          *config);
    }
  }
  return ncclSuccess;
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
    for (auto& [communicator, plan] : draft.plans) {
      if (communicator->n_ranks() == 1) continue;
      const ncclResult_t result = ChooseConfigs(*communicator, plan.collectives);
      if (result != ncclSuccess) return result;
    }
  }
  for (LaunchDraft& draft : drafts.all()) {
    const ncclResult_t result = Enqueue(std::move(draft));
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

}  // namespace dynamiccl::hostccl
