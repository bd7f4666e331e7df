// SPDX-License-Identifier: Apache-2.0
// The NCCL functions as a program sees them once this object is preloaded.
#include "plugin/interpose/real_nccl.h"

#define DYNAMICCL_EXPORT __attribute__((visibility("default")))

extern "C" {

DYNAMICCL_EXPORT ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                            ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                            cudaStream_t stream) {
  return DYNAMICCL_FORWARD(AllReduce, sendbuff, recvbuff, count, datatype, op, comm, stream);
}

DYNAMICCL_EXPORT ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                            ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return DYNAMICCL_FORWARD(AllGather, sendbuff, recvbuff, sendcount, datatype, comm, stream);
}

DYNAMICCL_EXPORT ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                                cudaStream_t stream) {
  return DYNAMICCL_FORWARD(ReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, comm, stream);
}

DYNAMICCL_EXPORT ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                            ncclDataType_t datatype, int root, ncclComm_t comm,
                                            cudaStream_t stream) {
  return DYNAMICCL_FORWARD(Broadcast, sendbuff, recvbuff, count, datatype, root, comm, stream);
}

DYNAMICCL_EXPORT ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root,
                                        ncclComm_t comm, cudaStream_t stream) {
  return DYNAMICCL_FORWARD(Bcast, buff, count, datatype, root, comm, stream);
}

DYNAMICCL_EXPORT ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count,
                                         ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                                         cudaStream_t stream) {
  return DYNAMICCL_FORWARD(Reduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream);
}

DYNAMICCL_EXPORT ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                                       ncclComm_t comm, cudaStream_t stream) {
  return DYNAMICCL_FORWARD(Send, sendbuff, count, datatype, peer, comm, stream);
}

DYNAMICCL_EXPORT ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                                       ncclComm_t comm, cudaStream_t stream) {
  return DYNAMICCL_FORWARD(Recv, recvbuff, count, datatype, peer, comm, stream);
}

DYNAMICCL_EXPORT ncclResult_t ncclGroupStart() {
  return DYNAMICCL_FORWARD(GroupStart);
}

DYNAMICCL_EXPORT ncclResult_t ncclGroupEnd() {
  return DYNAMICCL_FORWARD(GroupEnd);
}

DYNAMICCL_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  return DYNAMICCL_FORWARD(GetUniqueId, uniqueId);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return DYNAMICCL_FORWARD(CommInitRank, comm, nranks, commId, rank);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId,
                                                     int rank, ncclConfig_t* config) {
  return DYNAMICCL_FORWARD(CommInitRankConfig, comm, nranks, commId, rank, config);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return DYNAMICCL_FORWARD(CommInitAll, comm, ndev, devlist);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                                            ncclConfig_t* config) {
  return DYNAMICCL_FORWARD(CommSplit, comm, color, key, newcomm, config);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return DYNAMICCL_FORWARD(CommFinalize, comm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return DYNAMICCL_FORWARD(CommDestroy, comm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return DYNAMICCL_FORWARD(CommAbort, comm);
}

}  // extern "C"
