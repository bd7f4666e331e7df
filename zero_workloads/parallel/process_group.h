// SPDX-License-Identifier: Apache-2.0
// One NCCL communicator with a stream of its own: collectives on tensors, each with a label that a trace may
// record.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <stdexcept>

#include "src/annotate/phase_marker.h"
#include "src/base/status.h"
#include "zero_workloads/device/device.h"
#include "zero_workloads/parallel/rank_environment.h"
#include "zero_workloads/parallel/rendezvous.h"

namespace dynamiccl::zero {

// A collective that failed, with the NCCL function and NCCL's text. It ends the job (exit code 4).
class CollectiveFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The purpose of a call. It is recorded in traces (through src/annotate) and changes nothing else.
struct CallLabel {
  dynamicclPhase_t phase = DYNAMICCL_PHASE_OTHER;
  dynamicclRole_t role = DYNAMICCL_ROLE_OTHER;
};

// Selects how a sum reaches the owner of each part, and how each part reaches all other ranks.
enum class Exchange {
  // One ReduceScatter and one AllGather.
  kCollective,
  // One Reduce to the owner of each part, and one Broadcast from the owner, as in the ZeRO paper (section 5).
  kOwner,
};

// A collective that was issued: an event that happens when the collective is done, and the name of the NCCL
// function for messages. The event is null if nothing was issued.
struct PendingCollective {
  Event event;
  const char* function = nullptr;
};

// A communicator of one rank, used by one thread at a time. All ranks of the communicator must call the same
// functions in the same order. Tensors must be contiguous, live until the returned collective is done, and
// have a multiple of world() elements where NCCL requires it. Failures throw CollectiveFailure. After a
// failure only Abort() may be called.
//
// Collectives are asynchronous. They start after the compute work issued before them, and Await orders later
// compute work after them:
//
//   const PendingCollective sum = group->AllReduce(gradients, label);
//   ...  // other compute
//   group->Await(sum);  // compute issued from here on sees the sums
//
// The class has many methods because they are all operations of one communicator and share its stream.
class ProcessGroup {
 public:
  // Creates the group of all ranks. Every rank calls the function. It blocks until all ranks have joined, or
  // returns an error after `join.timeout`. `zero_stage` goes into the labels of calls.
  static Result<std::unique_ptr<ProcessGroup>> Create(const RankEnvironment& environment, int zero_stage,
                                                      const JoinSettings& join);
  ~ProcessGroup();
  // Creates a group of the ranks that pass the same `color`, ordered by `key`. The labels of its calls name
  // the same ZeRO stage. All ranks of this group call the function.
  Result<std::unique_ptr<ProcessGroup>> Split(int color, int key);

  int rank() const { return rank_; }
  int world() const { return world_; }
  // NCCL's own object; null after Abort.
  ncclComm_t communicator() const { return communicator_; }
  // Bytes that this rank had to send for its calls so far, independent of the algorithm: (N - 1) / N of the
  // full size for a ReduceScatter, an AllGather, a Reduce or a Broadcast (mean over the ranks), twice that
  // for an AllReduce.
  int64_t sent_bytes() const { return sent_bytes_; }
  // Sets the step in the labels of all later calls.
  void SetStep(int64_t step) { step_ = step; }
  // Returns the value of the setting `name` that the group's ranks have agreed on for their next call
  // (src/annotate/agreed_value.h), or `own` if they have agreed on none. All ranks call it at the same place.
  int64_t AgreedValue(const char* name, int64_t own) const;
  // Sets whether later calls of ReduceScatter and AllGather are one collective or calls for each owner. The
  // value must be the same on all ranks.
  void SetExchange(Exchange exchange) { exchange_ = exchange; }

  // Sums over the ranks in place, or takes the maximum or minimum.
  PendingCollective AllReduce(const at::Tensor& tensor, const CallLabel& label,
                              ncclRedOp_t operation = ncclSum);
  // `output` receives this rank's part of the sum, 1/world of `input`.
  PendingCollective ReduceScatter(const at::Tensor& input, const at::Tensor& output, const CallLabel& label);
  // `output` receives the inputs of all ranks in rank order.
  PendingCollective AllGather(const at::Tensor& input, const at::Tensor& output, const CallLabel& label);
  // `output` of rank `root` receives the sum of all inputs; on other ranks it may be empty.
  PendingCollective Reduce(const at::Tensor& input, const at::Tensor& output, int root,
                           const CallLabel& label);
  // `output` of every rank receives the input of rank `root`; on other ranks the input may be empty.
  PendingCollective Broadcast(const at::Tensor& input, const at::Tensor& output, int root,
                              const CallLabel& label);
  // After this call, every rank's tensor has the content of the tensor of rank `root`.
  PendingCollective Broadcast(const at::Tensor& tensor, int root, const CallLabel& label);

  // This group's later collectives start when `collective` is done, which another group of this rank has
  // issued. The caller does not wait.
  void StartAfter(const PendingCollective& collective) { stream_.StartAfter(collective.event); }
  // Compute work issued after this call sees the result. On CUDA the call does not block.
  void Await(const PendingCollective& collective);
  // Blocks until the result is available.
  void AwaitOnHost(const PendingCollective& collective);

  // Blocks until all collectives that were issued are done. Aborts the communicator if one of them fails. It
  // is for destructors of owners of memory that collectives read or write, and throws nothing.
  void Drain() noexcept;

  // Aborts the communicator so that no call of any thread hangs. After a failure, only this function may be
  // called.
  void Abort();

 private:
  ProcessGroup(ncclComm_t communicator, int rank, int world, int zero_stage)
      : communicator_(communicator), rank_(rank), world_(world), zero_stage_(zero_stage) {}
  // Records an event after the call, or throws if NCCL refused the call.
  PendingCollective Issue(ncclResult_t result, const char* function);
  // A ReduceScatter that is made of one Reduce to each rank.
  PendingCollective ReduceToOwners(const at::Tensor& input, const at::Tensor& output);
  // An AllGather that is made of one Broadcast from each rank.
  PendingCollective BroadcastByOwners(const at::Tensor& input, const at::Tensor& output);
  // Marks the call for the trace and orders it after the compute work issued so far.
  void Prepare(const CallLabel& label);
  // Adds the sent bytes of a call to the count. `full` holds the parts of all ranks; `times` says how often
  // each rank sends the other ranks' parts.
  void CountSent(const at::Tensor& full, int times);
  // Runs `wait`. If it throws, or if the communicator has an asynchronous error, throws CollectiveFailure.
  void Guard(const PendingCollective& collective, const std::function<void()>& wait);
  // Throws if NCCL reports an error of an earlier call.
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
