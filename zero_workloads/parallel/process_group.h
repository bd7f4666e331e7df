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

  int rank() const { return rank_; }
  int world() const { return world_; }
  // The step that labels name from now on.
  void SetStep(int64_t step) { step_ = step; }

  // Sums in place.
  PendingCollective AllReduce(const at::Tensor& tensor, const CallLabel& label);
  // `output` gets this rank's 1/world of the sum.
  PendingCollective ReduceScatter(const at::Tensor& input, const at::Tensor& output, const CallLabel& label);
  PendingCollective AllGather(const at::Tensor& input, const at::Tensor& output, const CallLabel& label);

  // Compute issued from here on sees the result.
  void Await(const PendingCollective& collective);
  // The result is there when this returns.
  void AwaitOnHost(const PendingCollective& collective);

  // Gives the communicator up so that no call of any thread hangs. The only call allowed after a failure.
  void Abort();

 private:
  ProcessGroup(ncclComm_t communicator, const RankEnvironment& environment, int zero_stage);
  PendingCollective Issue(ncclResult_t result, const char* function);
  void Prepare(const CallLabel& label);
  // Runs `wait`; what goes wrong in it becomes a CollectiveFailure that names the collective.
  void Guard(const PendingCollective& collective, const std::function<void()>& wait);
  void ThrowOnAsyncError(const char* function);

  ncclComm_t communicator_;
  int rank_;
  int world_;
  int zero_stage_;
  int64_t step_ = 0;
  Stream stream_;
};

}  // namespace dynamiccl::zero
