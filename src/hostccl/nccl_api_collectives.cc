// SPDX-License-Identifier: Apache-2.0
// NCCL's C functions that move data. Each only collects its arguments; the functions of api_call.h validate
// and issue the call.
#include "src/hostccl/api_call.h"
#include "src/hostccl/nccl_export.h"

using namespace dynamiccl;
using namespace dynamiccl::hostccl;

HOSTCCL_WEAK(Reduce)
HOSTCCL_WEAK(ReduceConfig)
HOSTCCL_WEAK(Bcast)
HOSTCCL_WEAK(Broadcast)
HOSTCCL_WEAK(BroadcastConfig)
HOSTCCL_WEAK(AllReduce)
HOSTCCL_WEAK(AllReduceConfig)
HOSTCCL_WEAK(ReduceScatter)
HOSTCCL_WEAK(ReduceScatterConfig)
HOSTCCL_WEAK(AllGather)
HOSTCCL_WEAK(AllGatherConfig)
HOSTCCL_WEAK(AlltoAll)
HOSTCCL_WEAK(AlltoAllConfig)
HOSTCCL_WEAK(Gather)
HOSTCCL_WEAK(GatherConfig)
HOSTCCL_WEAK(Scatter)
HOSTCCL_WEAK(ScatterConfig)
HOSTCCL_WEAK(RedOpCreatePreMulSum)
HOSTCCL_WEAK(RedOpDestroy)
HOSTCCL_WEAK(Send)
HOSTCCL_WEAK(Recv)

ncclResult_t pncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                         ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return CallCollective({Collective::kReduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream});
}

ncclResult_t pncclReduceConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                               const ncclCollConfig_t* config) {
  return CallCollective(
      {Collective::kReduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream, config});
}

ncclResult_t pncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                            int root, ncclComm_t comm, cudaStream_t stream) {
  return CallCollective(
      {Collective::kBroadcast, sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream});
}

ncclResult_t pncclBroadcastConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                  int root, ncclComm_t comm, cudaStream_t stream,
                                  const ncclCollConfig_t* config) {
  return CallCollective(
      {Collective::kBroadcast, sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream, config});
}

// This calls the public symbol ncclBroadcast, as NVIDIA's library does. So an interposer sees both calls.
ncclResult_t pncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return CallCollective({Collective::kAllReduce, sendbuff, recvbuff, count, datatype, op, 0, comm, stream});
}

ncclResult_t pncclAllReduceConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                  const ncclCollConfig_t* config) {
  return CallCollective(
      {Collective::kAllReduce, sendbuff, recvbuff, count, datatype, op, 0, comm, stream, config});
}

ncclResult_t pncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream) {
  return CallCollective(
      {Collective::kReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, 0, comm, stream});
}

ncclResult_t pncclReduceScatterConfig(const void* sendbuff, void* recvbuff, size_t recvcount,
                                      ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                      cudaStream_t stream, const ncclCollConfig_t* config) {
  return CallCollective(
      {Collective::kReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, 0, comm, stream, config});
}

ncclResult_t pncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream) {
  return CallCollective(
      {Collective::kAllGather, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0, comm, stream});
}

ncclResult_t pncclAllGatherConfig(const void* sendbuff, void* recvbuff, size_t sendcount,
                                  ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
                                  const ncclCollConfig_t* config) {
  return CallCollective(
      {Collective::kAllGather, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0, comm, stream, config});
}

// NCCL implements AlltoAll, Gather and Scatter as groups of Send and Recv. hostccl does the same.
ncclResult_t pncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  return CallGrouped(GroupedCollective::kAlltoAll,
                     {Collective::kSendRecv, sendbuff, recvbuff, count, datatype, ncclSum, 0, comm, stream});
}

ncclResult_t pncclAlltoAllConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return CallGrouped(GroupedCollective::kAlltoAll, {Collective::kSendRecv, sendbuff, recvbuff, count,
                                                    datatype, ncclSum, 0, comm, stream, config});
}

ncclResult_t pncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                         int root, ncclComm_t comm, cudaStream_t stream) {
  return CallGrouped(GroupedCollective::kGather, {Collective::kSendRecv, sendbuff, recvbuff, count, datatype,
                                                  ncclSum, root, comm, stream});
}

ncclResult_t pncclGatherConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                               int root, ncclComm_t comm, cudaStream_t stream,
                               const ncclCollConfig_t* config) {
  return CallGrouped(GroupedCollective::kGather, {Collective::kSendRecv, sendbuff, recvbuff, count, datatype,
                                                  ncclSum, root, comm, stream, config});
}

ncclResult_t pncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                          int root, ncclComm_t comm, cudaStream_t stream) {
  return CallGrouped(GroupedCollective::kScatter, {Collective::kSendRecv, sendbuff, recvbuff, count, datatype,
                                                   ncclSum, root, comm, stream});
}

ncclResult_t pncclScatterConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                int root, ncclComm_t comm, cudaStream_t stream,
                                const ncclCollConfig_t* config) {
  return CallGrouped(GroupedCollective::kScatter, {Collective::kSendRecv, sendbuff, recvbuff, count, datatype,
                                                   ncclSum, root, comm, stream, config});
}

// The const_cast is safe, because a send only reads its buffer.
ncclResult_t pncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return CallTransfer({true, const_cast<void*>(sendbuff), count, datatype, peer, comm, stream});
}

ncclResult_t pncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return CallTransfer({false, recvbuff, count, datatype, peer, comm, stream});
}

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm) {
  return CreatePreMulSum(comm, {scalar, datatype, residence}, op);
}

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return DestroyOperator(comm, op);
}
