// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/api_call.h"

#include <utility>

#include "src/hostccl/debug_log.h"
#include "src/hostccl/group.h"

namespace dynamiccl::hostccl {
namespace {

Result<DataType> CheckType(ncclDataType_t type) {
  if (type < 0 || type >= ncclNumTypes) {
    return MakeError(ErrorKind::kInvalidArgument, "data type {} does not exist", static_cast<int>(type));
  }
  return static_cast<DataType>(type);
}

bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}

// Which buffers a rank may leave out: only the root's side of rooted collectives is used.
Status CheckBuffers(const CollectiveArguments& arguments, int rank) {
  const bool is_root = rank == arguments.root;
  const bool needs_send = arguments.collective != Collective::kBroadcast || is_root;
  const bool needs_recv = arguments.collective != Collective::kReduce || is_root;
  if ((needs_send && arguments.send == nullptr) || (needs_recv && arguments.recv == nullptr)) {
    return MakeError(ErrorKind::kInvalidArgument, "{}: a buffer of {} elements is null",
                     Name(arguments.collective), arguments.count);
  }
  return {};
}

Status CheckHealthy(const Communicator& communicator) {
  if (communicator.async_error() == ncclSuccess && !communicator.aborted()) return {};
  return MakeError(ErrorKind::kPeerFailed,
                   "the communicator has failed before; only ncclCommAbort and ncclCommDestroy "
                   "are left");
}

Result<PendingCollective> Check(const CollectiveArguments& arguments) {
  PendingCollective pending;
  DYNAMICCL_TRY(pending.communicator, CheckCommunicator(arguments.comm));
  const Communicator& communicator = *pending.communicator;
  DYNAMICCL_CHECK_OK(CheckHealthy(communicator));
  CollectiveOperation& operation = pending.operation;
  DYNAMICCL_TRY(operation.data_type, CheckType(arguments.data_type));
  if (arguments.op < 0 || arguments.op >= ncclNumOps) {
    return MakeError(ErrorKind::kInvalidArgument, "reduction operator {} does not exist",
                     static_cast<int>(arguments.op));
  }
  if (arguments.root < 0 || arguments.root >= communicator.n_ranks()) {
    return MakeError(ErrorKind::kInvalidArgument, "root {} is not a rank of {}", arguments.root,
                     communicator.n_ranks());
  }
  if (arguments.count > 0) DYNAMICCL_CHECK_OK(CheckBuffers(arguments, communicator.rank()));
  operation.collective = arguments.collective;
  operation.send = static_cast<const std::byte*>(arguments.send);
  operation.recv = static_cast<std::byte*>(arguments.recv);
  operation.count = arguments.count;
  operation.op = static_cast<ReduceOp>(arguments.op);
  operation.root = arguments.root;
  if (!Reduces(arguments.collective)) {
    // As NCCL does: what only moves is moved, and planned, as bytes.
    operation.count *= ElementBytes(operation.data_type);
    operation.data_type = DataType::kInt8;
  }
  pending.stream = arguments.stream;
  return pending;
}

Result<PendingTransfer> Check(const TransferArguments& arguments) {
  PendingTransfer pending;
  DYNAMICCL_TRY(pending.communicator, CheckCommunicator(arguments.comm));
  DYNAMICCL_CHECK_OK(CheckHealthy(*pending.communicator));
  DYNAMICCL_TRY(const DataType type, CheckType(arguments.data_type));
  if (arguments.peer < 0 || arguments.peer >= pending.communicator->n_ranks()) {
    return MakeError(ErrorKind::kInvalidArgument, "peer {} is not a rank of {}", arguments.peer,
                     pending.communicator->n_ranks());
  }
  if (arguments.count > 0 && arguments.buffer == nullptr) {
    return MakeError(ErrorKind::kInvalidArgument, "the buffer of {} elements is null", arguments.count);
  }
  pending.stream = arguments.stream;
  pending.sends = arguments.sends;
  pending.transfer = {arguments.peer, static_cast<std::byte*>(arguments.buffer),
                      arguments.count * ElementBytes(type), type};
  return pending;
}

template <typename Arguments>
ncclResult_t CheckAndIssue(const Arguments& arguments) {
  auto pending = Check(arguments);
  if (!pending) return Refuse(pending.error());
  if (FindStream(arguments.stream) == nullptr) {
    return Refuse(
        Error{ErrorKind::kInvalidArgument, "the stream handle was not made by hostcclStreamCreate", {}});
  }
  if (arguments.count == 0) return ncclSuccess;
  return Issue(std::move(*pending));
}

}  // namespace

Result<std::shared_ptr<Communicator>> CheckCommunicator(ncclComm_t handle) {
  if (handle != nullptr && handle->magic == ncclComm::kMagic) return handle->communicator;
  return MakeError(ErrorKind::kInvalidArgument, "the communicator handle is null or was destroyed");
}

ncclResult_t CallCollective(const CollectiveArguments& arguments) {
  return CheckAndIssue(arguments);
}

ncclResult_t CallTransfer(const TransferArguments& arguments) {
  return CheckAndIssue(arguments);
}

ncclResult_t Refuse(const Error& error) {
  if (error.hint.empty()) {
    Warn("{}", error.message);
  } else {
    Warn("{} ({})", error.message, error.hint);
  }
  const ncclResult_t result = ToNcclResult(error.kind);
  NoteGroupError(result);
  return result;
}

}  // namespace dynamiccl::hostccl
