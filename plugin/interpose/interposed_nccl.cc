// SPDX-License-Identifier: Apache-2.0
// The NCCL functions as a program sees them once this object is preloaded: note the call, forward it, note
// the outcome.
#include "plugin/interpose/call_stream.h"
#include "plugin/interpose/communicator_births.h"
#include "plugin/interpose/real_nccl.h"
#include "src/annotate/phase_marker.h"
#include "src/base/clock.h"

#define DYNAMICCL_EXPORT __attribute__((visibility("default")))

using namespace dynamiccl;  // NOLINT(build/namespaces): this file defines C functions only

extern "C" {

DYNAMICCL_EXPORT ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                            ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                            cudaStream_t stream) {
  ApiCall call({Collective::kAllReduce, count, datatype, op, -1, comm, stream});
  return call.Finish(DYNAMICCL_FORWARD(AllReduce, sendbuff, recvbuff, count, datatype, op, comm, stream));
}

DYNAMICCL_EXPORT ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                            ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  ApiCall call({Collective::kAllGather, sendcount, datatype, 0, -1, comm, stream});
  return call.Finish(DYNAMICCL_FORWARD(AllGather, sendbuff, recvbuff, sendcount, datatype, comm, stream));
}

DYNAMICCL_EXPORT ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                                cudaStream_t stream) {
  ApiCall call({Collective::kReduceScatter, recvcount, datatype, op, -1, comm, stream});
  return call.Finish(
      DYNAMICCL_FORWARD(ReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, comm, stream));
}

DYNAMICCL_EXPORT ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                            ncclDataType_t datatype, int root, ncclComm_t comm,
                                            cudaStream_t stream) {
  ApiCall call({Collective::kBroadcast, count, datatype, 0, root, comm, stream});
  return call.Finish(DYNAMICCL_FORWARD(Broadcast, sendbuff, recvbuff, count, datatype, root, comm, stream));
}

// The library's own calls ncclBroadcast through its public name, inside this call's guard.
DYNAMICCL_EXPORT ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root,
                                        ncclComm_t comm, cudaStream_t stream) {
  ApiCall call({Collective::kBroadcast, count, datatype, 0, root, comm, stream});
  return call.Finish(DYNAMICCL_FORWARD(Bcast, buff, count, datatype, root, comm, stream));
}

DYNAMICCL_EXPORT ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count,
                                         ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                                         cudaStream_t stream) {
  ApiCall call({Collective::kReduce, count, datatype, op, root, comm, stream});
  return call.Finish(DYNAMICCL_FORWARD(Reduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream));
}

DYNAMICCL_EXPORT ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                                       ncclComm_t comm, cudaStream_t stream) {
  ApiCall call({Collective::kSend, count, datatype, 0, peer, comm, stream});
  return call.Finish(DYNAMICCL_FORWARD(Send, sendbuff, count, datatype, peer, comm, stream));
}

DYNAMICCL_EXPORT ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                                       ncclComm_t comm, cudaStream_t stream) {
  ApiCall call({Collective::kRecv, count, datatype, 0, peer, comm, stream});
  return call.Finish(DYNAMICCL_FORWARD(Recv, recvbuff, count, datatype, peer, comm, stream));
}

DYNAMICCL_EXPORT ncclResult_t ncclGroupStart() {
  const ReentryGuard guard;
  return GroupStarted(guard, DYNAMICCL_FORWARD(GroupStart));
}

DYNAMICCL_EXPORT ncclResult_t ncclGroupEnd() {
  GroupEnd group;
  return group.Finish(DYNAMICCL_FORWARD(GroupEnd));
}

// Not in the function table: NCCL before 2.22 has none.
DYNAMICCL_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* information) {
  GroupEnd group(/*simulated=*/true);
  const auto real = reinterpret_cast<decltype(&ncclGroupSimulateEnd)>(RealAddress("GroupSimulateEnd"));
  return group.FinishSimulated(real == nullptr ? ncclInvalidUsage : real(information));
}

DYNAMICCL_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  const ReentryGuard guard;
  const ncclResult_t result = DYNAMICCL_FORWARD(GetUniqueId, uniqueId);
  if (result == ncclSuccess && guard.outermost()) UniqueIdMade(*uniqueId);
  return result;
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  CommunicatorBirth birth(commId, nranks, rank, nullptr);
  return birth.Finish(DYNAMICCL_FORWARD(CommInitRank, comm, nranks, commId, rank), comm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId,
                                                     int rank, ncclConfig_t* config) {
  CommunicatorBirth birth(commId, nranks, rank, config);
  return birth.Finish(DYNAMICCL_FORWARD(CommInitRankConfig, comm, nranks, commId, rank, config), comm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  CommunicatorsOfProcess births(ndev);
  return births.Finish(DYNAMICCL_FORWARD(CommInitAll, comm, ndev, devlist), comm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                                            ncclConfig_t* config) {
  CommunicatorBirth birth(comm, color, config);
  return birth.Finish(DYNAMICCL_FORWARD(CommSplit, comm, color, key, newcomm, config), newcomm);
}

// A handle may be given out again once the library has freed it, so it is forgotten before.
DYNAMICCL_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const ReentryGuard guard;
  if (guard.outermost()) CommunicatorGone(comm);
  return DYNAMICCL_FORWARD(CommDestroy, comm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const ReentryGuard guard;
  if (guard.outermost()) CommunicatorGone(comm);
  return DYNAMICCL_FORWARD(CommAbort, comm);
}

DYNAMICCL_EXPORT void dynamicclMarkPhase(dynamicclPhase_t phase, int zero_stage, long long step) {
  MarkPhaseOfThisThread(phase, zero_stage, step);
}

DYNAMICCL_EXPORT void dynamicclMarkRole(dynamicclRole_t role) {
  LabelsOfThisThread().role = role >= 0 && role < kRoles ? static_cast<Role>(role) : Role::kUnknown;
}

}  // extern "C"
