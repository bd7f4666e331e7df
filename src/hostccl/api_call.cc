// SPDX-License-Identifier: Apache-2.0
// Validates calls in NCCL's order: communicator, its health, data type, operator, root, buffers,
// configuration. A call of zero elements is validated and then dropped, as NCCL does.
#include "src/hostccl/api_call.h"

#include <optional>
#include <utility>
#include <vector>

#include "src/hostccl/carried_call.h"
#include "src/hostccl/debug_log.h"
#include "src/hostccl/group.h"

namespace dynamiccl::hostccl {
namespace {

// Returns the data type of a call. Returns an error for a number that NCCL 2.32 does not have.
Result<DataType> CheckType(ncclDataType_t type) {
  if (type < 0 || type >= ncclNumTypes) {
    return MakeError(ErrorKind::kInvalidArgument, "data type {} does not exist", static_cast<int>(type));
  }
  return static_cast<DataType>(type);
}

// A collective with a root uses one of the buffers on the root only, so the other ranks may pass null for
// this buffer.
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

// Translates the operator into `operation`. The caller sets operation.data_type first, because a user-made
// operator belongs to one data type.
Status ReadOperator(const CollectiveArguments& arguments, Communicator& communicator,
                    CollectiveOperation& operation) {
  if (arguments.op >= 0 && arguments.op < ncclNumOps) {
    operation.op = static_cast<ReduceOp>(arguments.op);
    return {};
  }
  operation.op = ReduceOp::kSum;
  operation.multiplier = communicator.operators().Find(arguments.op);
  if (!operation.multiplier) {
    return MakeError(ErrorKind::kInvalidArgument, "reduction operator {} is unknown to this communicator",
                     static_cast<int>(arguments.op));
  }
  if (operation.multiplier->data_type == operation.data_type) return {};
  return MakeError(ErrorKind::kInvalidArgument, "reduction operator {} was made for {}, not for {}",
                   static_cast<int>(arguments.op), Name(operation.multiplier->data_type),
                   Name(operation.data_type));
}

// Returns an error if the communicator may not move data because it was revoked, finalized or aborted, or has
// failed.
Status CheckHealthy(ncclComm_t handle, const Communicator& communicator) {
  if (communicator.interrupted()) {
    return MakeError(ErrorKind::kUnsupported,
                     "the communicator was revoked, or shrunk with NCCL_SHRINK_ABORT: it moves no data "
                     "any more");
  }
  if (handle->finalized) return MakeError(ErrorKind::kUnsupported, "the communicator was finalized");
  if (communicator.async_error() == ncclSuccess && !communicator.aborted()) return {};
  return MakeError(ErrorKind::kPeerFailed,
                   "the communicator has failed before; only ncclCommAbort and ncclCommDestroy "
                   "are left");
}

// Validates a collective and returns it in the form that the group collects.
Result<PendingCollective> Check(const CollectiveArguments& arguments) {
  PendingCollective pending;
  DYNAMICCL_TRY(pending.communicator, CheckCommunicator(arguments.comm));
  const Communicator& communicator = *pending.communicator;
  DYNAMICCL_CHECK_OK(CheckHealthy(arguments.comm, communicator));
  CollectiveOperation& operation = pending.operation;
  DYNAMICCL_TRY(operation.data_type, CheckType(arguments.data_type));
  DYNAMICCL_CHECK_OK(ReadOperator(arguments, *pending.communicator, operation));
  if (arguments.root < 0 || arguments.root >= communicator.n_ranks()) {
    return MakeError(ErrorKind::kInvalidArgument, "root {} is not a rank of {}", arguments.root,
                     communicator.n_ranks());
  }
  if (arguments.count > 0) DYNAMICCL_CHECK_OK(CheckBuffers(arguments, communicator.rank()));
  operation.collective = arguments.collective;
  operation.send = static_cast<const std::byte*>(arguments.send);
  operation.recv = static_cast<std::byte*>(arguments.recv);
  operation.count = arguments.count;
  operation.root = arguments.root;
  DYNAMICCL_TRY(operation.choice, ReadCallConfig(arguments.config, arguments.collective));
  operation.events.user_tag = operation.choice.user_tag;
  if (!Reduces(arguments.collective)) {
    // Data that are moved without arithmetic are planned and moved as bytes, as in NCCL.
    operation.count *= ElementBytes(operation.data_type);
    operation.data_type = DataType::kInt8;
  }
  pending.handle = arguments.comm;
  pending.stream = arguments.stream;
  return pending;
}

// Validates a send or receive and returns it in the form that the group collects.
Result<PendingTransfer> Check(const TransferArguments& arguments) {
  PendingTransfer pending;
  DYNAMICCL_TRY(pending.communicator, CheckCommunicator(arguments.comm));
  DYNAMICCL_CHECK_OK(CheckHealthy(arguments.comm, *pending.communicator));
  DYNAMICCL_TRY(const DataType type, CheckType(arguments.data_type));
  if (arguments.peer < 0 || arguments.peer >= pending.communicator->n_ranks()) {
    return MakeError(ErrorKind::kInvalidArgument, "peer {} is not a rank of {}", arguments.peer,
                     pending.communicator->n_ranks());
  }
  if (arguments.count > 0 && arguments.buffer == nullptr) {
    return MakeError(ErrorKind::kInvalidArgument, "the buffer of {} elements is null", arguments.count);
  }
  pending.handle = arguments.comm;
  pending.stream = arguments.stream;
  pending.sends = arguments.sends;
  pending.transfer = {arguments.peer, static_cast<std::byte*>(arguments.buffer),
                      arguments.count * ElementBytes(type), type};
  return pending;
}

// A call of AlltoAll, Gather or Scatter, which becomes a group of sends and receives.
struct GroupedCall {
  GroupedCollective grouped = GroupedCollective::kAlltoAll;
  CollectiveArguments arguments;
};

// Returns this rank's sends and receives of the call. `block` is the number of bytes for one peer.
std::vector<TransferArguments> TransfersOf(const GroupedCall& call, int rank, int n_ranks, size_t block) {
  const CollectiveArguments& given = call.arguments;
  auto* const send = static_cast<std::byte*>(const_cast<void*>(given.send));
  auto* const recv = static_cast<std::byte*>(given.recv);
  const bool all_to_all = call.grouped == GroupedCollective::kAlltoAll;
  const bool spreads = all_to_all || (call.grouped == GroupedCollective::kScatter && rank == given.root);
  const bool collects = all_to_all || (call.grouped == GroupedCollective::kGather && rank == given.root);
  std::vector<TransferArguments> transfers;
  const auto add = [&](bool sends, std::byte* buffer, int peer) {
    transfers.push_back({sends, buffer, given.count, given.data_type, peer, given.comm, given.stream});
  };
  for (int peer = 0; peer < n_ranks; ++peer) {
    const size_t offset = static_cast<size_t>(peer) * block;
    if (spreads) add(true, send + offset, peer);
    if (collects) add(false, recv + offset, peer);
  }
  if (call.grouped == GroupedCollective::kGather) add(true, send, given.root);
  if (call.grouped == GroupedCollective::kScatter) add(false, recv, given.root);
  return transfers;
}

const char* NameOf(GroupedCollective grouped) {
  static constexpr const char* kNames[] = {"AlltoAll", "Gather", "Scatter"};
  return kNames[static_cast<size_t>(grouped)];
}

// Only the root uses Gather's receive buffer and Scatter's send buffer, so only there must they be valid.
Status CheckGroupedBuffers(const GroupedCall& call, int rank) {
  const CollectiveArguments& given = call.arguments;
  const bool is_root = rank == given.root;
  const bool needs_send = call.grouped != GroupedCollective::kScatter || is_root;
  const bool needs_recv = call.grouped != GroupedCollective::kGather || is_root;
  if ((needs_send && given.send == nullptr) || (needs_recv && given.recv == nullptr)) {
    return MakeError(ErrorKind::kInvalidArgument, "{}: a buffer of {} elements is null", NameOf(call.grouped),
                     given.count);
  }
  return {};
}

// Validates AlltoAll, Gather or Scatter and splits it into sends and receives. The first of these carries the
// event of the call's ncclCollConfig_t.
Result<std::vector<PendingTransfer>> Check(const GroupedCall& call) {
  const CollectiveArguments& given = call.arguments;
  DYNAMICCL_TRY(const auto communicator, CheckCommunicator(given.comm));
  DYNAMICCL_CHECK_OK(CheckHealthy(given.comm, *communicator));
  DYNAMICCL_TRY(const DataType type, CheckType(given.data_type));
  if (given.root < 0 || given.root >= communicator->n_ranks()) {
    return MakeError(ErrorKind::kInvalidArgument, "{}: root {} is not a rank of {}", NameOf(call.grouped),
                     given.root, communicator->n_ranks());
  }
  if (given.count > 0) DYNAMICCL_CHECK_OK(CheckGroupedBuffers(call, communicator->rank()));
  // Sends and receives have no algorithm to choose: channel limits are accepted, a forced algorithm is
  // refused.
  DYNAMICCL_TRY(const CallChoice choice, ReadCallConfig(given.config, Collective::kSendRecv));
  std::vector<PendingTransfer> pending;
  const size_t block = given.count * ElementBytes(type);
  for (const auto& transfer : TransfersOf(call, communicator->rank(), communicator->n_ranks(), block)) {
    DYNAMICCL_TRY(PendingTransfer checked, Check(transfer));
    checked.transfer.events.user_tag = choice.user_tag;
    pending.push_back(std::move(checked));
  }
  if (!pending.empty()) pending.front().launch_event = choice.launch_event;
  return pending;
}

// Issues all transfers as one group, so that they cannot deadlock in any order.
ncclResult_t Issue(std::vector<PendingTransfer> transfers) {
  GroupStart();
  for (PendingTransfer& transfer : transfers) hostccl::Issue(std::move(transfer));
  return GroupEnd();
}

// Validates a call, checks its stream, drops a call of zero elements, and issues all others. Every call takes
// this path.
template <typename Arguments>
ncclResult_t CheckAndIssue(const Arguments& arguments, cudaStream_t stream, size_t count) {
  auto pending = Check(arguments);
  if (!pending) return Refuse(pending.error());
  if (FindStream(stream) == nullptr) {
    return Refuse(
        Error{ErrorKind::kInvalidArgument, "the stream handle was not made by hostcclStreamCreate", {}});
  }
  if (count == 0) return ncclSuccess;
  return Issue(std::move(*pending));
}

// Runs a call and returns the result that the program sees, which depends on the state of the communicator's
// handle.
template <typename Arguments>
ncclResult_t Call(const Arguments& arguments) {
  return ResultFor(arguments.comm, CheckAndIssue(arguments, arguments.stream, arguments.count));
}

// Returns the values by which a repeated call finds its plan. A call that only moves data counts as a call of
// bytes. Returns nothing for a data type or an operator that is not NCCL's own.
std::optional<RepeatedCall> Repeated(const CollectiveArguments& arguments) {
  const bool known_type = arguments.data_type >= 0 && arguments.data_type < ncclNumTypes;
  if (!known_type || arguments.op < 0 || arguments.op >= ncclNumOps) return {};
  const auto type = static_cast<DataType>(arguments.data_type);
  const auto op = static_cast<ReduceOp>(arguments.op);
  if (Reduces(arguments.collective)) return RepeatedCall{arguments.collective, type, op, arguments.count};
  return RepeatedCall{arguments.collective, DataType::kInt8, op, arguments.count * ElementBytes(type)};
}

// Runs a repeated call by the plan that the communicator kept. If there is no such plan, or anything about
// the call is unusual, it does nothing and returns false. The ordinary path then runs the call or reports
// what is wrong.
bool RunRepeated(const CollectiveArguments& arguments) {
  const ncclComm_t handle = arguments.comm;
  if (arguments.config != nullptr || InGroup() || arguments.send == nullptr || arguments.recv == nullptr) {
    return false;
  }
  const auto call = Repeated(arguments);
  if (!call || handle == nullptr) return false;
  const HandleUse use(*handle);
  const auto* const communicator = use.communicator();
  if (communicator == nullptr || (*communicator)->profiler() != nullptr) return false;
  const Planner& planner = (*communicator)->planner();
  const CachedPlan* const plan = planner.answers_last() ? (*communicator)->plan_cache().Find(*call) : nullptr;
  if (plan == nullptr || !CheckHealthy(handle, **communicator)) return false;
  const auto stream = FindStream(arguments.stream);
  if (stream == nullptr) return false;
  planner.LogScheduled(call->collective, call->count * ElementBytes(call->data_type), plan->config);
  RunCached(*communicator, *plan, static_cast<const std::byte*>(arguments.send),
            static_cast<std::byte*>(arguments.recv), *stream);
  return true;
}

}  // namespace

ncclResult_t CallCollective(const CollectiveArguments& arguments) {
  return RunRepeated(arguments) ? ncclSuccess : Call(arguments);
}

ncclResult_t CallTransfer(const TransferArguments& arguments) {
  return Call(arguments);
}

ncclResult_t CallGrouped(GroupedCollective grouped, const CollectiveArguments& arguments) {
  const ncclResult_t result =
      CheckAndIssue(GroupedCall{grouped, arguments}, arguments.stream, arguments.count);
  return ResultFor(arguments.comm, result);
}

ncclResult_t CreatePreMulSum(ncclComm_t comm, const PreMulSumArguments& arguments, ncclRedOp_t* op) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  const auto type = CheckType(arguments.data_type);
  if (!type) return Refuse(type.error());
  const bool immediate = arguments.residence == ncclScalarHostImmediate;
  if (op == nullptr || arguments.scalar == nullptr ||
      (!immediate && arguments.residence != ncclScalarDevice)) {
    return Refuse(Error{ErrorKind::kInvalidArgument,
                        "ncclRedOpCreatePreMulSum: a null pointer, or a residence that does not exist",
                        {}});
  }
  PreMultiplier factor{*type, {}, arguments.scalar};
  if (immediate) factor = {*type, factor.Read(), nullptr};
  *op = (*communicator)->operators().Add(factor);
  return ncclSuccess;
}

ncclResult_t DestroyOperator(ncclComm_t comm, ncclRedOp_t op) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  if ((*communicator)->operators().Remove(op)) return ncclSuccess;
  return Refuse(Error{
      ErrorKind::kInvalidArgument,
      fmt::format("ncclRedOpDestroy: operator {} was not made on this communicator", static_cast<int>(op)),
      {}});
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
