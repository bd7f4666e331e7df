// SPDX-License-Identifier: Apache-2.0
// The functions of nccl.h, declared in this one place as a list of
//
//   F(since, door, result type, name without "nccl", (parameters), (arguments))
//
// `since` is the release that brought the function (22203: 2.22.3; 21801: 2.18.1 or before). `door` says what
// the object that is loaded into jobs does with a call of the function (plugin/interpose):
//
//   Passed             nothing: the program's call reaches the library directly
//   Moves              the call moves data; it is recorded and counted, then forwarded
//   MovesAsConfigured  as Moves; the last argument is a configuration for this call
//   MovesFromInside    as Moves, but the library itself also calls the function through its public name
//   Named              the call makes or ends communicators or groups; plugin/interpose has a function for it
//
// A user of the list defines a macro with these six parameters and passes it, for example to declare the
// functions (nccl_api.h) or to hold their addresses (nccl_function_table.h). The file includes nothing, so
// that tests can also read it against NVIDIA's nccl.h.
#pragma once

// Functions that are interposed, forwarded, replayed or called through a table. Every release from 2.18 on
// has them.
#define DYNAMICCL_NCCL_FUNCTIONS(F)                                                                          \
  F(21801, Passed, ncclResult_t, GetVersion, (int* version), (version))                                      \
  F(21801, Named, ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId), (uniqueId))                          \
  F(21801, Passed, const char*, GetErrorString, (ncclResult_t result), (result))                             \
  F(21801, Passed, const char*, GetLastError, (ncclComm_t comm), (comm))                                     \
  F(21801, Named, ncclResult_t, CommInitRank,                                                                \
    (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank), (comm, nranks, commId, rank))            \
  F(21801, Named, ncclResult_t, CommInitRankConfig,                                                          \
    (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config),                    \
    (comm, nranks, commId, rank, config))                                                                    \
  F(21801, Named, ncclResult_t, CommInitAll, (ncclComm_t * comm, int ndev, const int* devlist),              \
    (comm, ndev, devlist))                                                                                   \
  F(21801, Named, ncclResult_t, CommSplit,                                                                   \
    (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config),                        \
    (comm, color, key, newcomm, config))                                                                     \
  F(21801, Passed, ncclResult_t, CommFinalize, (ncclComm_t comm), (comm))                                    \
  F(21801, Named, ncclResult_t, CommDestroy, (ncclComm_t comm), (comm))                                      \
  F(21801, Named, ncclResult_t, CommAbort, (ncclComm_t comm), (comm))                                        \
  F(21801, Passed, ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t * asyncError),            \
    (comm, asyncError))                                                                                      \
  F(21801, Passed, ncclResult_t, CommCount, (const ncclComm_t comm, int* count), (comm, count))              \
  F(21801, Passed, ncclResult_t, CommCuDevice, (const ncclComm_t comm, int* device), (comm, device))         \
  F(21801, Passed, ncclResult_t, CommUserRank, (const ncclComm_t comm, int* rank), (comm, rank))             \
  F(21801, Moves, ncclResult_t, Reduce,                                                                      \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,  \
     ncclComm_t comm, cudaStream_t stream),                                                                  \
    (sendbuff, recvbuff, count, datatype, op, root, comm, stream))                                           \
  F(21801, Moves, ncclResult_t, Bcast,                                                                       \
    (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream),     \
    (buff, count, datatype, root, comm, stream))                                                             \
  F(21801, MovesFromInside, ncclResult_t, Broadcast,                                                         \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, \
     cudaStream_t stream),                                                                                   \
    (sendbuff, recvbuff, count, datatype, root, comm, stream))                                               \
  F(21801, Moves, ncclResult_t, AllReduce,                                                                   \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,            \
     ncclComm_t comm, cudaStream_t stream),                                                                  \
    (sendbuff, recvbuff, count, datatype, op, comm, stream))                                                 \
  F(21801, Moves, ncclResult_t, ReduceScatter,                                                               \
    (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,        \
     ncclComm_t comm, cudaStream_t stream),                                                                  \
    (sendbuff, recvbuff, recvcount, datatype, op, comm, stream))                                             \
  F(21801, Moves, ncclResult_t, AllGather,                                                                   \
    (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,       \
     cudaStream_t stream),                                                                                   \
    (sendbuff, recvbuff, sendcount, datatype, comm, stream))                                                 \
  F(21801, Moves, ncclResult_t, Send,                                                                        \
    (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,                 \
     cudaStream_t stream),                                                                                   \
    (sendbuff, count, datatype, peer, comm, stream))                                                         \
  F(21801, Moves, ncclResult_t, Recv,                                                                        \
    (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream), \
    (recvbuff, count, datatype, peer, comm, stream))                                                         \
  F(21801, Named, ncclResult_t, GroupStart, (void), ())                                                      \
  F(21801, Named, ncclResult_t, GroupEnd, (void), ())

// The rest of nccl.h 2.32, which hostccl exports as well.
#define DYNAMICCL_NCCL_FURTHER_FUNCTIONS(F)                                                                  \
  F(22203, Named, ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * simInfo), (simInfo))                      \
  F(22304, Named, ncclResult_t, CommInitRankScalable,                                                        \
    (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds, ncclConfig_t* config),    \
    (newcomm, nranks, myrank, nId, commIds, config))                                                         \
  F(22807, Named, ncclResult_t, CommRevoke, (ncclComm_t comm, int revokeFlags), (comm, revokeFlags))         \
  F(22703, Named, ncclResult_t, CommShrink,                                                                  \
    (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,                     \
     ncclConfig_t* config, int shrinkFlags),                                                                 \
    (comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags))                               \
  F(22902, Named, ncclResult_t, CommGetUniqueId, (ncclComm_t comm, ncclUniqueId * uniqueId),                 \
    (comm, uniqueId))                                                                                        \
  F(22902, Named, ncclResult_t, CommGrow,                                                                    \
    (ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm,               \
     ncclConfig_t* config),                                                                                  \
    (comm, nRanks, uniqueId, rank, newcomm, config))                                                         \
  F(21900, Passed, ncclResult_t, CommRegister,                                                               \
    (const ncclComm_t comm, void* buff, size_t size, void** handle), (comm, buff, size, handle))             \
  F(21900, Passed, ncclResult_t, CommDeregister, (const ncclComm_t comm, void* handle), (comm, handle))      \
  F(22907, Passed, ncclResult_t, CommSuspend, (ncclComm_t comm, int flags), (comm, flags))                   \
  F(22907, Passed, ncclResult_t, CommResume, (ncclComm_t comm), (comm))                                      \
  F(22907, Passed, ncclResult_t, CommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t * value),  \
    (comm, stat, value))                                                                                     \
  F(22703, Passed, ncclResult_t, CommWindowRegister,                                                         \
    (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags),                             \
    (comm, buff, size, win, winFlags))                                                                       \
  F(22703, Passed, ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t win), (comm, win))     \
  F(22902, Passed, ncclResult_t, WinGetUserPtr, (ncclComm_t comm, ncclWindow_t win, void** outUserPtr),      \
    (comm, win, outUserPtr))                                                                                 \
  F(21900, Passed, ncclResult_t, MemAlloc, (void** ptr, size_t size), (ptr, size))                           \
  F(21900, Passed, ncclResult_t, MemFree, (void* ptr), (ptr))                                                \
  F(21801, Passed, ncclResult_t, RedOpCreatePreMulSum,                                                       \
    (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence,               \
     ncclComm_t comm),                                                                                       \
    (op, scalar, datatype, residence, comm))                                                                 \
  F(21801, Passed, ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm), (op, comm))                \
  F(22803, Moves, ncclResult_t, AlltoAll,                                                                    \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,           \
     cudaStream_t stream),                                                                                   \
    (sendbuff, recvbuff, count, datatype, comm, stream))                                                     \
  F(22803, Moves, ncclResult_t, Gather,                                                                      \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, \
     cudaStream_t stream),                                                                                   \
    (sendbuff, recvbuff, count, datatype, root, comm, stream))                                               \
  F(22803, Moves, ncclResult_t, Scatter,                                                                     \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, \
     cudaStream_t stream),                                                                                   \
    (sendbuff, recvbuff, count, datatype, root, comm, stream))                                               \
  F(23102, MovesAsConfigured, ncclResult_t, AllReduceConfig,                                                 \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,            \
     ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config),                                  \
    (sendbuff, recvbuff, count, datatype, op, comm, stream, config))                                         \
  F(23102, MovesAsConfigured, ncclResult_t, BroadcastConfig,                                                 \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, \
     cudaStream_t stream, const ncclCollConfig_t* config),                                                   \
    (sendbuff, recvbuff, count, datatype, root, comm, stream, config))                                       \
  F(23102, MovesAsConfigured, ncclResult_t, ReduceConfig,                                                    \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,  \
     ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config),                                  \
    (sendbuff, recvbuff, count, datatype, op, root, comm, stream, config))                                   \
  F(23102, MovesAsConfigured, ncclResult_t, AllGatherConfig,                                                 \
    (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,       \
     cudaStream_t stream, const ncclCollConfig_t* config),                                                   \
    (sendbuff, recvbuff, sendcount, datatype, comm, stream, config))                                         \
  F(23102, MovesAsConfigured, ncclResult_t, ReduceScatterConfig,                                             \
    (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,        \
     ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config),                                  \
    (sendbuff, recvbuff, recvcount, datatype, op, comm, stream, config))                                     \
  F(23102, MovesAsConfigured, ncclResult_t, AlltoAllConfig,                                                  \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,           \
     cudaStream_t stream, const ncclCollConfig_t* config),                                                   \
    (sendbuff, recvbuff, count, datatype, comm, stream, config))                                             \
  F(23102, MovesAsConfigured, ncclResult_t, GatherConfig,                                                    \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, \
     cudaStream_t stream, const ncclCollConfig_t* config),                                                   \
    (sendbuff, recvbuff, count, datatype, root, comm, stream, config))                                       \
  F(23102, MovesAsConfigured, ncclResult_t, ScatterConfig,                                                   \
    (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, \
     cudaStream_t stream, const ncclCollConfig_t* config),                                                   \
    (sendbuff, recvbuff, count, datatype, root, comm, stream, config))                                       \
  F(22902, Moves, ncclResult_t, PutSignal,                                                                   \
    (const void* localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin,           \
     size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream),   \
    (localbuff, count, datatype, peer, peerWin, peerWinOffset, sigIdx, ctx, flags, comm, stream))            \
  F(22902, Passed, ncclResult_t, Signal,                                                                     \
    (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream),               \
    (peer, sigIdx, ctx, flags, comm, stream))                                                                \
  F(22902, Passed, ncclResult_t, WaitSignal,                                                                 \
    (int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t stream),                    \
    (nDesc, signalDescs, comm, stream))                                                                      \
  F(23203, Passed, ncclResult_t, SetEncryption, (const ncclEncryptionConfig_t* config), (config))            \
  F(23004, Passed, ncclResult_t, ParamBind, (ncclParamHandle_t * out, const char* key), (out, key))          \
  F(23004, Passed, ncclResult_t, ParamGetI8, (ncclParamHandle_t h, int8_t * out), (h, out))                  \
  F(23004, Passed, ncclResult_t, ParamGetI16, (ncclParamHandle_t h, int16_t * out), (h, out))                \
  F(23004, Passed, ncclResult_t, ParamGetI32, (ncclParamHandle_t h, int32_t * out), (h, out))                \
  F(23004, Passed, ncclResult_t, ParamGetI64, (ncclParamHandle_t h, int64_t * out), (h, out))                \
  F(23004, Passed, ncclResult_t, ParamGetU8, (ncclParamHandle_t h, uint8_t * out), (h, out))                 \
  F(23004, Passed, ncclResult_t, ParamGetU16, (ncclParamHandle_t h, uint16_t * out), (h, out))               \
  F(23004, Passed, ncclResult_t, ParamGetU32, (ncclParamHandle_t h, uint32_t * out), (h, out))               \
  F(23004, Passed, ncclResult_t, ParamGetU64, (ncclParamHandle_t h, uint64_t * out), (h, out))               \
  F(23004, Passed, ncclResult_t, ParamGetStr, (ncclParamHandle_t h, const char** out), (h, out))             \
  F(23004, Passed, ncclResult_t, ParamGet, (ncclParamHandle_t h, void* out, int maxLen, int* len),           \
    (h, out, maxLen, len))                                                                                   \
  F(23004, Passed, ncclResult_t, ParamGetParameter, (const char* key, const char** value, int* valueLen),    \
    (key, value, valueLen))                                                                                  \
  F(23004, Passed, ncclResult_t, ParamGetAllParameterKeys, (const char*** table, int* tableLen),             \
    (table, tableLen))                                                                                       \
  F(23004, Passed, void, ParamDumpAll, (void), ())                                                           \
  F(22403, Passed, void, ResetDebugInit, (void), ())
