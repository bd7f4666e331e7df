// SPDX-License-Identifier: Apache-2.0
// The NCCL functions that are interposed, forwarded, replayed or called through a table: declared once, here.
//   DYNAMICCL_NCCL_FUNCTION(result type, name without "nccl", (parameters), (arguments))
// Without any include, so that it can be read against NVIDIA's nccl.h too.
#pragma once

#define DYNAMICCL_NCCL_FUNCTIONS(F)                                                                          \
  F(ncclResult_t, GetVersion, (int* version), (version))                                                     \
  F(ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId), (uniqueId))                                        \
  F(const char*, GetErrorString, (ncclResult_t result), (result))                                            \
  F(const char*, GetLastError, (ncclComm_t comm), (comm))                                                    \
  F(ncclResult_t, CommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank),              \
    (comm, nranks, commId, rank))                                                                            \
  F(ncclResult_t, CommInitRankConfig,                                                                        \
    (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config),                    \
    (comm, nranks, commId, rank, config))                                                                    \
  F(ncclResult_t, CommInitAll, (ncclComm_t * comm, int ndev, const int* devlist), (comm, ndev, devlist))     \
  F(ncclResult_t, CommSplit,                                                                                 \
    (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config),                        \
    (comm, color, key, newcomm, config))                                                                     \
  F(ncclResult_t, CommFinalize, (ncclComm_t comm), (comm))                                                   \
  F(ncclResult_t, CommDestroy, (ncclComm_t comm), (comm))                                                    \
  F(ncclResult_t, CommAbort, (ncclComm_t comm), (comm))                                                      \
  F(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t * asyncError), (comm, asyncError))       \
  F(ncclResult_t, CommCount, (const ncclComm_t comm, int* count), (comm, count))                             \
  F(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int* device), (comm, device))                        \
  F(ncclResult_t, CommUserRank, (const ncclComm_t comm, int* rank), (comm, rank))                            \
  F(ncclResult_t, Reduce,                                                                                    \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,  \
     ncclComm_t comm, cudaStream_t stream),                                                                  \
    (sendbuff, recvbuff, count, datatype, op, root, comm, stream))                                           \
  F(ncclResult_t, Bcast,                                                                                     \
    (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream),     \
    (buff, count, datatype, root, comm, stream))                                                             \
  F(ncclResult_t, Broadcast,                                                                                 \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, \
     cudaStream_t stream),                                                                                   \
    (sendbuff, recvbuff, count, datatype, root, comm, stream))                                               \
  F(ncclResult_t, AllReduce,                                                                                 \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,            \
     ncclComm_t comm, cudaStream_t stream),                                                                  \
    (sendbuff, recvbuff, count, datatype, op, comm, stream))                                                 \
  F(ncclResult_t, ReduceScatter,                                                                             \
    (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,        \
     ncclComm_t comm, cudaStream_t stream),                                                                  \
    (sendbuff, recvbuff, recvcount, datatype, op, comm, stream))                                             \
  F(ncclResult_t, AllGather,                                                                                 \
    (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,       \
     cudaStream_t stream),                                                                                   \
    (sendbuff, recvbuff, sendcount, datatype, comm, stream))                                                 \
  F(ncclResult_t, Send,                                                                                      \
    (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,                 \
     cudaStream_t stream),                                                                                   \
    (sendbuff, count, datatype, peer, comm, stream))                                                         \
  F(ncclResult_t, Recv,                                                                                      \
    (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream), \
    (recvbuff, count, datatype, peer, comm, stream))                                                         \
  F(ncclResult_t, GroupStart, (void), ())                                                                    \
  F(ncclResult_t, GroupEnd, (void), ())
