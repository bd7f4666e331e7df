// SPDX-License-Identifier: Apache-2.0
// Thin wrappers of NCCL's calls. An error has one of two origins: NCCL refuses the call at once, or the call
// fails later, which ncclCommGetAsyncError reports while the caller waits.
#include "zero_workloads/parallel/process_group.h"

#include <utility>

#include "src/annotate/agreed_value.h"

namespace dynamiccl::zero {
namespace {

Status NcclStatus(ncclResult_t result, const char* function) {
  if (result == ncclSuccess) return {};
  // If NCCL refuses settings or arguments, the settings or arguments are wrong. Every other result means that
  // a machine or peer failed.
  const bool refused = result == ncclInvalidArgument || result == ncclInvalidUsage;
  return WithHint(MakeError(refused ? ErrorKind::kInvalidArgument : ErrorKind::kPeerFailed, "{}: {} ({})",
                            function, ncclGetErrorString(result), ncclGetLastError(nullptr)),
                  "NCCL_DEBUG=WARN shows NCCL's own reason");
}

ncclDataType_t NcclType(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kHalf:
      return ncclFloat16;
    case at::kByte:
      return ncclUint8;
    default:
      throw std::logic_error("no NCCL type for this tensor");
  }
}

size_t Count(const at::Tensor& tensor) {
  return static_cast<size_t>(tensor.numel());
}

}  // namespace

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::Create(const RankEnvironment& environment, int zero_stage,
                                                           const JoinSettings& join) {
  ncclUniqueId id{};
  if (environment.rank == 0) DYNAMICCL_CHECK_OK(NcclStatus(ncclGetUniqueId(&id), "ncclGetUniqueId"));
  DYNAMICCL_TRY(id, ExchangeUniqueId(environment, id, join));
  ncclComm_t communicator = nullptr;
  DYNAMICCL_CHECK_OK(NcclStatus(ncclCommInitRank(&communicator, environment.world, id, environment.rank),
                                "ncclCommInitRank"));
  return std::unique_ptr<ProcessGroup>(
      new ProcessGroup(communicator, environment.rank, environment.world, zero_stage));
}

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::Split(int color, int key) {
  ncclComm_t communicator = nullptr;
  DYNAMICCL_CHECK_OK(
      NcclStatus(ncclCommSplit(communicator_, color, key, &communicator, nullptr), "ncclCommSplit"));
  int rank = 0, world = 0;
  DYNAMICCL_CHECK_OK(NcclStatus(ncclCommUserRank(communicator, &rank), "ncclCommUserRank"));
  DYNAMICCL_CHECK_OK(NcclStatus(ncclCommCount(communicator, &world), "ncclCommCount"));
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(communicator, rank, world, zero_stage_));
}

ProcessGroup::~ProcessGroup() {
  if (communicator_ != nullptr) ncclCommDestroy(communicator_);
}

int64_t ProcessGroup::AgreedValue(const char* name, int64_t own) const {
  return agree::Value(name, own, communicator_);
}

void ProcessGroup::Prepare(const CallLabel& label) {
  annotate::MarkPhase(label.phase, zero_stage_, step_);
  annotate::MarkRole(label.role);
  stream_.StartAfterCompute();
}

void ProcessGroup::CountSent(const at::Tensor& full, int times) {
  sent_bytes_ += times * (static_cast<int64_t>(full.nbytes()) * (world_ - 1) / world_);
}

PendingCollective ProcessGroup::Issue(ncclResult_t result, const char* function) {
  if (result != ncclSuccess) {
    throw CollectiveFailure(
        fmt::format("{}: {} ({})", function, ncclGetErrorString(result), ncclGetLastError(communicator_)));
  }
  return {stream_.Record(), function};
}

PendingCollective ProcessGroup::AllReduce(const at::Tensor& tensor, const CallLabel& label,
                                          ncclRedOp_t operation) {
  Prepare(label);
  CountSent(tensor, 2);
  void* data = tensor.data_ptr();
  return Issue(
      ncclAllReduce(data, data, Count(tensor), NcclType(tensor), operation, communicator_, stream_.handle()),
      "ncclAllReduce");
}

PendingCollective ProcessGroup::ReduceScatter(const at::Tensor& input, const at::Tensor& output,
                                              const CallLabel& label) {
  Prepare(label);
  CountSent(input, 1);
  if (exchange_ == Exchange::kOwner) return ReduceToOwners(input, output);
  return Issue(ncclReduceScatter(input.data_ptr(), output.data_ptr(), Count(output), NcclType(output),
                                 ncclSum, communicator_, stream_.handle()),
               "ncclReduceScatter");
}

PendingCollective ProcessGroup::AllGather(const at::Tensor& input, const at::Tensor& output,
                                          const CallLabel& label) {
  Prepare(label);
  CountSent(output, 1);
  if (exchange_ == Exchange::kOwner) return BroadcastByOwners(input, output);
  return Issue(ncclAllGather(input.data_ptr(), output.data_ptr(), Count(input), NcclType(input),
                             communicator_, stream_.handle()),
               "ncclAllGather");
}

PendingCollective ProcessGroup::ReduceToOwners(const at::Tensor& input, const at::Tensor& output) {
  PendingCollective last;
  for (int owner = 0; owner < world_; ++owner) {
    const at::Tensor part = input.narrow(0, owner * output.numel(), output.numel());
    last = Issue(ncclReduce(part.data_ptr(), output.data_ptr(), Count(part), NcclType(part), ncclSum, owner,
                            communicator_, stream_.handle()),
                 "ncclReduce");
  }
  return last;
}

PendingCollective ProcessGroup::BroadcastByOwners(const at::Tensor& input, const at::Tensor& output) {
  PendingCollective last;
  for (int owner = 0; owner < world_; ++owner) {
    const at::Tensor part = output.narrow(0, owner * input.numel(), input.numel());
    last = Issue(ncclBroadcast(input.data_ptr(), part.data_ptr(), Count(part), NcclType(part), owner,
                               communicator_, stream_.handle()),
                 "ncclBroadcast");
  }
  return last;
}

PendingCollective ProcessGroup::Reduce(const at::Tensor& input, const at::Tensor& output, int root,
                                       const CallLabel& label) {
  Prepare(label);
  CountSent(input, 1);
  void* const to = rank_ == root ? output.data_ptr() : input.data_ptr();
  return Issue(ncclReduce(input.data_ptr(), to, Count(input), NcclType(input), ncclSum, root, communicator_,
                          stream_.handle()),
               "ncclReduce");
}

PendingCollective ProcessGroup::Broadcast(const at::Tensor& input, const at::Tensor& output, int root,
                                          const CallLabel& label) {
  Prepare(label);
  CountSent(output, 1);
  const void* const from = rank_ == root ? input.data_ptr() : output.data_ptr();
  return Issue(ncclBroadcast(from, output.data_ptr(), Count(output), NcclType(output), root, communicator_,
                             stream_.handle()),
               "ncclBroadcast");
}

PendingCollective ProcessGroup::Broadcast(const at::Tensor& tensor, int root, const CallLabel& label) {
  return Broadcast(tensor, tensor, root, label);
}

void ProcessGroup::ThrowOnAsyncError(const char* function) {
  ncclResult_t error = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &error);
  if (asked != ncclSuccess) error = asked;
  if (error == ncclSuccess || error == ncclInProgress) return;
  throw CollectiveFailure(
      fmt::format("{}: {} ({})", function, ncclGetErrorString(error), ncclGetLastError(communicator_)));
}

void ProcessGroup::Guard(const PendingCollective& collective, const std::function<void()>& wait) {
  try {
    wait();
  } catch (const std::runtime_error& failure) {
    // NCCL's own error explains more than the exception of the stream, so it is thrown if there is one.
    ThrowOnAsyncError(collective.function);
    throw CollectiveFailure(fmt::format("{}: {}", collective.function, failure.what()));
  }
  ThrowOnAsyncError(collective.function);
}

void ProcessGroup::Await(const PendingCollective& collective) {
  if (collective.event == nullptr) return;
  Guard(collective, [&] { StartComputeAfter(collective.event); });
}

void ProcessGroup::AwaitOnHost(const PendingCollective& collective) {
  Guard(collective, [&] { WaitOnHost(collective.event, [&] { ThrowOnAsyncError(collective.function); }); });
}

void ProcessGroup::Drain() noexcept {
  if (communicator_ == nullptr) return;
  try {
    AwaitOnHost({stream_.Record(), "the last collective"});
  } catch (const std::exception&) {
    Abort();
  }
}

void ProcessGroup::Abort() {
  if (communicator_ != nullptr) ncclCommAbort(std::exchange(communicator_, nullptr));
}

}  // namespace dynamiccl::zero
