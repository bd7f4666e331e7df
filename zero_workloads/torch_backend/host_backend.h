// SPDX-License-Identifier: Apache-2.0
// The backend "dynamiccl" of torch.distributed: each operation as plain NCCL calls on host memory. It uses
// NCCL's C API like any other program, so an interposed library sees PyTorch's own traffic.
//
// A group has one communicator. Its calls run asynchronously, one after another in the order of issue. A call
// that is done when NCCL returns is complete at once. Send and receive outside a coalescing block use a
// communicator for each pair of ranks, as in PyTorch's NCCL backend. A message that its peer does not receive
// yet then delays only this pair.
#pragma once

#include <unistd.h>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "zero_workloads/torch_backend/deadline_watch.h"
#include "zero_workloads/torch_backend/pair_channel.h"

namespace dynamiccl::torch_backend {

// One process group of one rank; torch owns it. Any thread may call it, but all ranks must issue the same
// collectives in the same order. Arguments that NCCL cannot handle throw ValueError or TypeError before
// anything is issued. Failures of NCCL throw c10::DistBackendError, from the call or from its work.
//
// The class has many methods because c10d::Backend does: each operation of torch.distributed is a virtual
// function. Three files implement them by kind.
class HostBackend final : public c10d::Backend {
 public:
  // This rank's place in the group.
  struct Membership {
    int rank = 0;
    int size = 1;
    std::string group_name;
    // Ranks of the members in the default group; empty if they are the same as in this group.
    std::vector<uint64_t> global_ranks;
    std::chrono::milliseconds timeout = kBackendDefaultTimeout;
  };
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkHandle = c10::intrusive_ptr<c10d::Work>;

  // Collective over the group: returns when all ranks have joined.
  HostBackend(c10::intrusive_ptr<c10d::Store> store, Membership membership);
  ~HostBackend() override;

  const std::string getBackendName() const override { return "dynamiccl"; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  // Sets the time-out of calls that are issued afterwards, and raises hostccl's own to it.
  void setTimeout(std::chrono::milliseconds timeout) override;
  // Sequence numbers start at 0 on every rank, so the ranks need not agree on a first number.
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  // Returns COMM_ERROR once the communicator was aborted or NCCL has reported an error.
  c10d::ErrorType getError() override;
  // Ends all calls in flight, on this rank and its peers. The group cannot be used afterwards.
  void abort() override;
  // Waits for all issued calls.
  void shutdown() override;
  // Collective over this group. Returns null on ranks that are not in `ranks`, which must be ascending.
  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                    const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>& opts) override;

  void startCoalescing() override;
  WorkHandle endCoalescing() override;

  // These operations are implemented in collectives.cc. Each has one tensor as input and one as output.
  WorkHandle broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  WorkHandle allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkHandle allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override;
  WorkHandle reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  WorkHandle _allgather_base(at::Tensor& output, at::Tensor& input,
                             const c10d::AllgatherOptions& opts) override;
  WorkHandle allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::AllgatherOptions& opts) override;
  WorkHandle _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                  const c10d::ReduceScatterOptions& opts) override;
  WorkHandle reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::ReduceScatterOptions& opts) override;
  WorkHandle barrier(const c10d::BarrierOptions& opts) override;

  // These operations are implemented in tensor_lists.cc. Each has a list with a tensor for each rank.
  WorkHandle allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) override;
  WorkHandle allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                 const c10d::AllgatherOptions& opts) override;
  WorkHandle reduce_scatter(Tensors& outputs, TensorLists& inputs,
                            const c10d::ReduceScatterOptions& opts) override;
  WorkHandle gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& opts) override;
  WorkHandle scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& opts) override;
  WorkHandle alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                           std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& opts) override;
  WorkHandle alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;

  // These operations are implemented in point_to_point.cc. They exchange messages between two ranks.
  WorkHandle send(Tensors& tensors, int destination, int tag) override;
  WorkHandle recv(Tensors& tensors, int source, int tag) override;

 private:
  // An operation before it is issued.
  struct Call {
    const char* operation;
    c10d::OpType type;
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
    PendingWork::Content content = {};
  };
  // An open coalescing block, from startCoalescing to endCoalescing. All its calls become one NCCL group and
  // one work.
  struct Coalescing {
    // NCCL's group is open on this thread. Calls of other threads are no part of the block.
    std::thread::id thread = std::this_thread::get_id();
    // The work of the block's first call. Later calls of the block join this work.
    c10::intrusive_ptr<PendingWork> work;
  };
  // Drops this thread's open block if the operation that declares the guard throws: torch.distributed does
  // not end the block then, and later calls of the thread would join it and never run. The destructor locks
  // the backend's mutex.
  class BlockGuard {
   public:
    explicit BlockGuard(HostBackend& backend) : backend_(backend) {}
    ~BlockGuard();
    BlockGuard(const BlockGuard&) = delete;
    BlockGuard& operator=(const BlockGuard&) = delete;

   private:
    HostBackend& backend_;
    const int exceptions_ = std::uncaught_exceptions();
  };
  // A function that issues the NCCL calls of one operation.
  using NcclCalls = std::function<ncclResult_t(ncclComm_t communicator, cudaStream_t stream)>;

  // Issues `calls` on the group's communicator, as one NCCL group if there are several.
  WorkHandle Issue(Call call, bool several, const NcclCalls& calls);
  // Issues `calls` on the given communicator. Returns null inside a coalescing block.
  WorkHandle IssueOn(const std::shared_ptr<Communicator>& communicator, Call call, bool several,
                     const NcclCalls& calls);
  static ncclResult_t IssueToNccl(Communicator& communicator, bool several, const NcclCalls& calls);
  // True if a call of this thread joins an open block. The caller holds the mutex.
  bool Coalesces() const { return coalescing_ && coalescing_->thread == std::this_thread::get_id(); }
  // Closes the open block of this thread without running its calls. The caller holds the mutex.
  void DropBlock();
  // Creates a work with the next sequence number.
  c10::intrusive_ptr<PendingWork> NewWork(Call call);
  // Sends inputs[r] to each rank r, and receives outputs[r] from rank r.
  WorkHandle Exchange(Call call, const Tensors& outputs, const Tensors& inputs);
  // Throws ValueError for a rank that the group does not have.
  void CheckRank(const char* operation, const char* name, int64_t rank) const;
  // Sends or receives through the pair's channel, or inside a coalescing block through the group's
  // communicator.
  WorkHandle Message(Call call, int peer, const std::function<NcclCalls(int peer)>& calls);
  HostBackend(c10::intrusive_ptr<c10d::Store> store, Membership membership,
              std::shared_ptr<Communicator> communicator);

  const c10::intrusive_ptr<c10d::Store> store_;
  const c10::intrusive_ptr<Options> options_;
  // Keeps NCCL calls and their works in the same order. No function holds it while it waits for peers.
  std::mutex mutex_;
  // The group's communicator, shared with the works in flight.
  std::shared_ptr<Communicator> communicator_;
  // Channels for point-to-point messages by peer rank. A channel is made at the first message to its peer.
  std::map<int, std::unique_ptr<PairChannel>> pairs_;
  std::optional<Coalescing> coalescing_;
  std::atomic<uint64_t> sequence_{0};
  std::unique_ptr<DeadlineWatch> watch_ = std::make_unique<DeadlineWatch>();
  const pid_t process_ = ::getpid();
};

}  // namespace dynamiccl::torch_backend
