// SPDX-License-Identifier: Apache-2.0
// NCCL's C functions for version and errors, for communicators, and for groups. Each only converts its
// arguments and calls a function of communicator_api.h or group.h.
#include <algorithm>
#include <cstring>
#include <string>

#include "src/hostccl/api_call.h"
#include "src/hostccl/communicator_api.h"
#include "src/hostccl/debug_log.h"
#include "src/hostccl/group.h"
#include "src/hostccl/nccl_export.h"

#pragma GCC visibility push(default)
#include "src/nccl_abi/host_channels.h"
#pragma GCC visibility pop

using namespace dynamiccl;
using namespace dynamiccl::hostccl;

HOSTCCL_WEAK(GetVersion)
HOSTCCL_WEAK(GetErrorString)
HOSTCCL_WEAK(GetLastError)
HOSTCCL_WEAK(ResetDebugInit)
HOSTCCL_WEAK(GetUniqueId)
HOSTCCL_WEAK(CommInitRank)
HOSTCCL_WEAK(CommInitRankConfig)
HOSTCCL_WEAK(CommInitRankScalable)
HOSTCCL_WEAK(CommInitAll)
HOSTCCL_WEAK(CommSplit)
HOSTCCL_WEAK(CommShrink)
HOSTCCL_WEAK(CommGetUniqueId)
HOSTCCL_WEAK(CommGrow)
HOSTCCL_WEAK(CommFinalize)
HOSTCCL_WEAK(CommRevoke)
HOSTCCL_WEAK(CommDestroy)
HOSTCCL_WEAK(CommAbort)
HOSTCCL_WEAK(CommGetAsyncError)
HOSTCCL_WEAK(CommCount)
HOSTCCL_WEAK(CommCuDevice)
HOSTCCL_WEAK(CommUserRank)
HOSTCCL_WEAK(GroupStart)
HOSTCCL_WEAK(GroupEnd)
HOSTCCL_WEAK(GroupSimulateEnd)

namespace {

// Makes one rank. The rank has device 0, because hostccl has no current device.
ncclResult_t InitOne(ncclComm_t* comm, int n_ranks, const ncclUniqueId& id, int rank,
                     const ncclConfig_t* config) {
  return InitRank(comm, {n_ranks, rank, 0, std::span(&id, 1), config});
}

// Stores the result of a Communicator's member function in *answer, if the communicator is initialised.
ncclResult_t Ask(ncclComm_t comm, int* answer, int (Communicator::*question)() const) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  if (answer == nullptr)
    return Refuse(Error{ErrorKind::kInvalidArgument, "the place of the answer is null", {}});
  *answer = ((**communicator).*question)();
  return ncclSuccess;
}

}  // namespace

// Returns the version of the emulated NCCL release (HOSTCCL_EMULATE).
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
                                                         "NCCL operation in progress",
                                                         "timeout"};
  return result >= 0 && result < ncclNumResults ? kTexts[result] : "unknown result code";
}

// The text is valid until the same thread calls this again.
const char* pncclGetLastError(ncclComm_t comm) {
  static thread_local std::string text;
  const auto communicator = CheckCommunicator(comm);
  text = communicator ? (*communicator)->failure() : "";
  if (text.empty()) text = LastWarning();
  return text.c_str();
}

void pncclResetDebugInit() {
  ReloadDebugSettings();
}

ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId) {
  return GetUniqueId(uniqueId);
}

ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return InitOne(comm, nranks, commId, rank, nullptr);
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t* config) {
  return InitOne(comm, nranks, commId, rank, config);
}

// NCCL spreads the ranks over several ids to speed up its bootstrap. In hostccl all ranks meet at the first
// id.
ncclResult_t pncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                       ncclUniqueId* commIds, ncclConfig_t* config) {
  const size_t count = commIds == nullptr || nId < 0 ? 0 : static_cast<size_t>(nId);
  return InitRank(newcomm, {nranks, myrank, 0, std::span<const ncclUniqueId>(commIds, count), config});
}

ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return InitAll(comm, ndev, devlist);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  return Split(comm, color, key, newcomm, config);
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                             ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  const bool given = excludeRanksList != nullptr && excludeRanksCount > 0;
  const std::span<const int> excluded(excludeRanksList, given ? static_cast<size_t>(excludeRanksCount) : 0);
  return Shrink(comm, {excluded, config, shrinkFlags}, newcomm);
}

ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId) {
  return GetGrowId(comm, uniqueId);
}

ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank,
                           ncclComm_t* newcomm, ncclConfig_t* config) {
  return Grow(comm, {nRanks, uniqueId, rank, config}, newcomm);
}

ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  return Finalize(comm);
}
ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return Revoke(comm, revokeFlags);
}
ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  return Destroy(comm);
}
ncclResult_t pncclCommAbort(ncclComm_t comm) {
  return Abort(comm);
}

// Stores ncclInProgress while a non-blocking call runs, then the result of that call. After a failure of the
// communicator it stores the first failure.
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  if (!IsLive(comm) || asyncError == nullptr) {
    return Refuse(Error{ErrorKind::kInvalidArgument, "ncclCommGetAsyncError: null or destroyed handle", {}});
  }
  *asyncError = StateOf(*comm);
  return ncclSuccess;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int* count) {
  return Ask(comm, count, &Communicator::n_ranks);
}
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device) {
  return Ask(comm, device, &Communicator::device);
}
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank) {
  return Ask(comm, rank, &Communicator::rank);
}

ncclResult_t hostcclUsualChannels(ncclComm_t comm, int collective, uint64_t bytes, int algorithm,
                                  int protocol, int* channels) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  const auto below = [](int number, int count) { return number >= 0 && number < count; };
  if (channels == nullptr || !below(collective, kTunableCollectives) || !below(algorithm, kAlgorithms) ||
      !below(protocol, kProtocols))
    return Refuse(
        Error{ErrorKind::kInvalidArgument, "hostcclUsualChannels: no such call, or channels is null", {}});
  const CollectiveConfig config{static_cast<Algorithm>(algorithm), static_cast<Protocol>(protocol), 0};
  *channels = (*communicator)
                  ->planner()
                  .UsualChannels({.collective = static_cast<Collective>(collective), .bytes = bytes}, config);
  return ncclSuccess;
}

ncclResult_t pncclGroupStart() {
  GroupStart();
  return ncclSuccess;
}

ncclResult_t pncclGroupEnd() {
  return GroupEnd();
}

// Reads and writes at most simInfo->size bytes. A null simInfo only closes the group.
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  ncclSimInfo_t info = DYNAMICCL_NCCL_SIM_INFO_INITIALIZER;
  if (simInfo == nullptr) return GroupSimulate(&info.estimatedTime);
  const size_t size = std::min(simInfo->size, sizeof(info));
  std::memcpy(static_cast<void*>(&info), simInfo, size);
  if (info.magic != NCCL_SIM_INFO_MAGIC) {
    // The group is closed although the argument is wrong.
    NoteGroupError(ncclInvalidArgument);
    Warn("ncclSimInfo_t was not initialised with NCCL_SIM_INFO_INITIALIZER");
  }
  const ncclResult_t result = GroupSimulate(&info.estimatedTime);
  if (result == ncclSuccess) std::memcpy(simInfo, &info, size);
  return result;
}
