// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/parallel/process_group.h"

#include <utility>

namespace dynamiccl::zero {
namespace {

Status NcclStatus(ncclResult_t result, const char* function) {
  if (result == ncclSuccess) return {};
  // The library refuses its own settings or the launch; everything else is a machine or peer that fails.
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
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(communicator, environment, zero_stage));
}

ProcessGroup::ProcessGroup(ncclComm_t communicator, const RankEnvironment& environment, int zero_stage)
    : communicator_(communicator),
      rank_(environment.rank),
      world_(environment.world),
      zero_stage_(zero_stage) {}

ProcessGroup::~ProcessGroup() {
  if (communicator_ != nullptr) ncclCommDestroy(communicator_);
}

void ProcessGroup::Prepare(const CallLabel& label) {
  annotate::MarkPhase(label.phase, zero_stage_, step_);
  annotate::MarkRole(label.role);
  stream_.StartAfterCompute();
}

PendingCollective ProcessGroup::Issue(ncclResult_t result, const char* function) {
  if (result != ncclSuccess) {
    throw CollectiveFailure(
        fmt::format("{}: {} ({})", function, ncclGetErrorString(result), ncclGetLastError(communicator_)));
  }
  return {stream_.Record(), function};
}

PendingCollective ProcessGroup::AllReduce(const at::Tensor& tensor, const CallLabel& label) {
  Prepare(label);
  void* data = tensor.data_ptr();
  return Issue(
      ncclAllReduce(data, data, Count(tensor), NcclType(tensor), ncclSum, communicator_, stream_.handle()),
      "ncclAllReduce");
}

PendingCollective ProcessGroup::ReduceScatter(const at::Tensor& input, const at::Tensor& output,
                                              const CallLabel& label) {
  Prepare(label);
  return Issue(ncclReduceScatter(input.data_ptr(), output.data_ptr(), Count(output), NcclType(output),
                                 ncclSum, communicator_, stream_.handle()),
               "ncclReduceScatter");
}

PendingCollective ProcessGroup::AllGather(const at::Tensor& input, const at::Tensor& output,
                                          const CallLabel& label) {
  Prepare(label);
  return Issue(ncclAllGather(input.data_ptr(), output.data_ptr(), Count(input), NcclType(input),
                             communicator_, stream_.handle()),
               "ncclAllGather");
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
    ThrowOnAsyncError(collective.function);  // NCCL's reason says more than the stream's
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

void ProcessGroup::Abort() {
  if (communicator_ != nullptr) ncclCommAbort(std::exchange(communicator_, nullptr));
}

}  // namespace dynamiccl::zero
