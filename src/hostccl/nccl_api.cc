// SPDX-License-Identifier: Apache-2.0
// NCCL's C functions. As in NVIDIA's library each is a strong pncclX with a weak alias ncclX, so that a
// preloaded library may define ncclX and forward to pncclX.
#pragma GCC visibility push(default)
#include "src/nccl_abi/nccl_api.h"
#include "src/nccl_abi/nccl_function_table.h"
extern "C" {
#define HOSTCCL_STRONG(result, name, parameters, arguments) result pnccl##name parameters;
DYNAMICCL_NCCL_FUNCTIONS(HOSTCCL_STRONG)
#define HOSTCCL_WEAK(result, name, parameters, arguments) \
  __attribute__((weak, alias("pnccl" #name))) result nccl##name parameters;
DYNAMICCL_NCCL_FUNCTIONS(HOSTCCL_WEAK)
}
#pragma GCC visibility pop

#include "src/hostccl/api_call.h"
#include "src/hostccl/communicator_api.h"
#include "src/hostccl/debug_log.h"
#include "src/hostccl/group.h"

using namespace dynamiccl;
using namespace dynamiccl::hostccl;

ncclResult_t pncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  const auto emulated = EmulatedFromEnvironment();
  if (!emulated) return Refuse(emulated.error());
  *version = VersionCode(*emulated);
  return ncclSuccess;
}

const char* pncclGetErrorString(ncclResult_t result) {
  static constexpr const char* kTexts[ncclNumResults] = {"no error",
                                                         "unhandled cuda error",
                                                         "unhandled system error",
                                                         "internal error",
                                                         "invalid argument",
                                                         "invalid usage",
                                                         "remote process exited or there was a network error",
                                                         "NCCL operation in progress"};
  return result >= 0 && result < ncclNumResults ? kTexts[result] : "unknown result code";
}

// Valid until the thread asks again.
const char* pncclGetLastError(ncclComm_t comm) {
  static thread_local std::string text;
  const auto communicator = CheckCommunicator(comm);
  text = communicator ? (*communicator)->failure() : "";
  if (text.empty()) text = LastWarning();
  return text.c_str();
}

ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId) {
  return GetUniqueId(uniqueId);
}

ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return InitRank(comm, nranks, commId, rank, nullptr);
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t* config) {
  return InitRank(comm, nranks, commId, rank, config);
}

ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return InitAll(comm, ndev, devlist);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  return Split(comm, color, key, newcomm, config);
}

ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  return Finalize(comm);
}
ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  return Destroy(comm);
}
ncclResult_t pncclCommAbort(ncclComm_t comm) {
  return Abort(comm);
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator || asyncError == nullptr) return ncclInvalidArgument;
  *asyncError = (*communicator)->async_error();
  return ncclSuccess;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int* count) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator || count == nullptr) return ncclInvalidArgument;
  *count = (*communicator)->n_ranks();
  return ncclSuccess;
}

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator || device == nullptr) return ncclInvalidArgument;
  *device = (*communicator)->device();
  return ncclSuccess;
}

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator || rank == nullptr) return ncclInvalidArgument;
  *rank = (*communicator)->rank();
  return ncclSuccess;
}

ncclResult_t pncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                         ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return CallCollective({Collective::kReduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream});
}

ncclResult_t pncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                            int root, ncclComm_t comm, cudaStream_t stream) {
  return CallCollective(
      {Collective::kBroadcast, sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream});
}

// Through the public symbol, as NVIDIA's library does: an interposer sees both.
ncclResult_t pncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return CallCollective({Collective::kAllReduce, sendbuff, recvbuff, count, datatype, op, 0, comm, stream});
}

ncclResult_t pncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream) {
  return CallCollective(
      {Collective::kReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, 0, comm, stream});
}

ncclResult_t pncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream) {
  return CallCollective(
      {Collective::kAllGather, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0, comm, stream});
}

ncclResult_t pncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return CallTransfer({true, const_cast<void*>(sendbuff), count, datatype, peer, comm, stream});
}

ncclResult_t pncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return CallTransfer({false, recvbuff, count, datatype, peer, comm, stream});
}

ncclResult_t pncclGroupStart() {
  GroupStart();
  return ncclSuccess;
}

ncclResult_t pncclGroupEnd() {
  return GroupEnd();
}
