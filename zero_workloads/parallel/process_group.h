// SPDX-License-Identifier: Apache-2.0
// One NCCL communicator with its stream: collectives on tensors, each with the label that a trace may record.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <stdexcept>

#include "src/annotate/phase_marker.h"
#include "src/base/status.h"
#include "zero_workloads/device.h"
#include "zero_workloads/parallel/rank_environment.h"
#include "zero_workloads/parallel/rendezvous.h"

namespace dynamiccl::zero {

// A collective that failed: which NCCL function, and NCCL's text for it. Ends the job (exit code 4).
class CollectiveFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a call is for; goes to the trace through src/annotate and changes nothing else.
struct CallLabel {
  dynamicclPhase_t phase = DYNAMICCL_PHASE_OTHER;
  dynamicclRole_t role = DYNAMICCL_ROLE_OTHER;
};

// How a sum reaches the owner of each part, and a part everybody else.
enum class Exchange {
  kCollective,  // one ReduceScatter, one AllGather
  // One Reduce to each part's owner, one Broadcast from it, as the ZeRO paper describes it (section 5).
  kOwner,
};

// A collective that was issued: when it is done, and its NCCL function for messages. Empty where nothing was
// issued.
struct PendingCollective {
  Event event;
  const char* function = nullptr;
};

// Every rank calls the same functions in the same order. Tensors are contiguous, live until the returned
// collective is done, and hold world-size multiples where NCCL asks for it. Used by one thread at a time;
// failures throw CollectiveFailure.
class ProcessGroup {
 public:
  static Result<std::unique_ptr<ProcessGroup>> Create(const RankEnvironment& environment, int zero_stage,
                                                      const JoinSettings& join);
  ~ProcessGroup();
  // A group of the ranks that pass the same `color`, in the order of `key`; its labels name the same stage.
  // All ranks of this group call it.
  Result<std::unique_ptr<ProcessGroup>> Split(int color, int key);

  int rank() const { return rank_; }
  int world() const { return world_; }
  // Bytes that this rank had to send for its calls so far, whatever algorithm moved them: (N - 1) / N of the
  // full size for a ReduceScatter, an AllGather or a Broadcast (mean over the ranks), twice that for an
  // AllReduce.
  int64_t sent_bytes() const { return sent_bytes_; }
  // The step that labels name from now on.
  void SetStep(int64_t step) { step_ = step; }
  // Of ReduceScatter and AllGather from now on; the same on all ranks.
  void SetExchange(Exchange exchange) { exchange_ = exchange; }

  // Sums in place, or takes the largest.
  PendingCollective AllReduce(const at::Tensor& tensor, const CallLabel& label,
                              ncclRedOp_t operation = ncclSum);
  // `output` gets this rank's 1/world of the sum.
  PendingCollective ReduceScatter(const at::Tensor& input, const at::Tensor& output, const CallLabel& label);
  PendingCollective AllGather(const at::Tensor& input, const at::Tensor& output, const CallLabel& label);
  // Every rank's tensor becomes `root`'s.
  PendingCollective Broadcast(const at::Tensor& tensor, int root, const CallLabel& label);

  // Compute issued from here on sees the result.
  void Await(const PendingCollective& collective);
  // The result is there when this returns.
  void AwaitOnHost(const PendingCollective& collective);

  // Gives the communicator up so that no call of any thread hangs. The only call allowed after a failure.
  void Abort();

 private:
  ProcessGroup(ncclComm_t communicator, int rank, int world, int zero_stage)
      : communicator_(communicator), rank_(rank), world_(world), zero_stage_(zero_stage) {}
  PendingCollective Issue(ncclResult_t result, const char* function);
  PendingCollective ReduceToOwners(const at::Tensor& input, const at::Tensor& output);
  PendingCollective BroadcastByOwners(const at::Tensor& input, const at::Tensor& output);
  void Prepare(const CallLabel& label);
  // `times`: how often the tensor's other ranks' parts are sent.
  void CountSent(const at::Tensor& full, int times);
  // Runs `wait`; what goes wrong in it becomes a CollectiveFailure that names the collective.
  void Guard(const PendingCollective& collective, const std::function<void()>& wait);
  void ThrowOnAsyncError(const char* function);

  ncclComm_t communicator_;
  int rank_;
  int world_;
  int zero_stage_;
  int64_t step_ = 0;
  int64_t sent_bytes_ = 0;
  Exchange exchange_ = Exchange::kCollective;
  Stream stream_;
};

}  // namespace dynamiccl::zero
