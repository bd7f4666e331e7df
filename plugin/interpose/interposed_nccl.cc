// SPDX-License-Identifier: Apache-2.0
// The NCCL functions that a program calls when this object is preloaded. Each notes the call, forwards it and
// notes the result. Functions that move data are generated from the table in nccl_function_list.h; functions
// that make or end communicators and groups are written out.
//
// This is what the macros below make of the table's line for ncclReduceScatter:
//
//   ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
//                                  ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
//                                  cudaStream_t stream) {
//     // Describes the call and gives it its number; inside a group the group's end numbers it.
//     ApiCall call({Collective::kReduceScatter, recvcount, datatype, op, -1, IssuedBy::kEveryRank}, comm,
//                  stream, /*configured=*/false);
//     // The library's own function. It asks the tuner on this thread, before it returns.
//     const auto real = reinterpret_cast<decltype(&ncclReduceScatter)>(
//         RealAddress(RealFunction::kReduceScatter));
//     // Records the call if the library took it, and passes the library's result through.
//     return call.Finish(real == nullptr
//                            ? ncclInvalidUsage
//                            : real(sendbuff, recvbuff, recvcount, datatype, op, comm, stream));
//   }
//
// In the same way it makes ncclAllReduce, ncclAllGather, ncclBroadcast, ncclBcast, ncclReduce, ncclAlltoAll,
// ncclGather, ncclScatter, ncclSend, ncclRecv and ncclPutSignal, and the forms of the collectives that take a
// configuration of the call, such as ncclReduceScatterConfig.
#include "plugin/border/real_nccl.h"
#include "plugin/interpose/agreed_value.h"
#include "plugin/interpose/call_stream.h"
#include "plugin/interpose/communicator_creation.h"
#include "plugin/interpose/program_config.h"
#include "plugin/interpose/thread_labels.h"
#include "src/annotate/agreed_value.h"
#include "src/annotate/phase_marker.h"
#include "src/base/clock.h"

#define DYNAMICCL_EXPORT __attribute__((visibility("default")))
// The functions that every call runs are marked hot, here and in other files, so that the linker places them
// in a few neighbouring pages.
#define DYNAMICCL_HOT __attribute__((hot))

using namespace dynamiccl;  // NOLINT(build/namespaces): this file defines C functions only

namespace {

// Returns the real function for ncclBroadcast, which NCCL calls through the public name from its own
// ncclBcast. The answer for the last caller is kept, because finding it takes three calls into the dynamic
// linker.
void* BroadcastFor(const void* caller) {
  struct Answer {
    const void* caller = nullptr;
    void* address = nullptr;
  };
  static thread_local Answer last;
  if (caller != last.caller) last = {caller, RealAddressInside(caller, RealFunction::kBroadcast)};
  return last.address != nullptr ? last.address : RealAddress(RealFunction::kBroadcast);
}

}  // namespace

// For each function that moves data: the members of ApiArguments in their order, written in terms of the
// function's parameters.
#define FACTS_AllReduce Collective::kAllReduce, count, datatype, op, -1, IssuedBy::kEveryRank
#define FACTS_AllGather Collective::kAllGather, sendcount, datatype, ncclSum, -1, IssuedBy::kEveryRank
#define FACTS_ReduceScatter Collective::kReduceScatter, recvcount, datatype, op, -1, IssuedBy::kEveryRank
#define FACTS_Broadcast Collective::kBroadcast, count, datatype, ncclSum, root, IssuedBy::kEveryRank
#define FACTS_Bcast FACTS_Broadcast
#define FACTS_Reduce Collective::kReduce, count, datatype, op, root, IssuedBy::kEveryRank
#define FACTS_AlltoAll Collective::kAllToAll, count, datatype, ncclSum, -1, IssuedBy::kEveryRank
#define FACTS_Gather Collective::kSend, count, datatype, ncclSum, root, IssuedBy::kEveryRank
#define FACTS_Scatter Collective::kRecv, count, datatype, ncclSum, root, IssuedBy::kEveryRank
#define FACTS_Send Collective::kSend, count, datatype, ncclSum, peer, IssuedBy::kSomeRanks
#define FACTS_Recv Collective::kRecv, count, datatype, ncclSum, peer, IssuedBy::kSomeRanks
#define FACTS_PutSignal FACTS_Send
#define FACTS_AllReduceConfig FACTS_AllReduce
#define FACTS_AllGatherConfig FACTS_AllGather
#define FACTS_ReduceScatterConfig FACTS_ReduceScatter
#define FACTS_BroadcastConfig FACTS_Broadcast
#define FACTS_ReduceConfig FACTS_Reduce
#define FACTS_AlltoAllConfig FACTS_AlltoAll
#define FACTS_GatherConfig FACTS_Gather
#define FACTS_ScatterConfig FACTS_Scatter

// There is one macro DOOR_<kind> for each kind of function in the table. Passed: the function is not
// interposed. Named: it is written out below. Moves: it moves data. MovesAsConfigured: it moves data and
// takes a configuration of the call. MovesFromInside: it moves data, and the library itself calls it by its
// public name, too.
#define DYNAMICCL_REAL(name) RealAddress(RealFunction::k##name)
#define DYNAMICCL_MOVE(result, name, parameters, arguments, chosen, address) \
  DYNAMICCL_EXPORT DYNAMICCL_HOT result nccl##name parameters {              \
    ApiCall call({FACTS_##name}, comm, stream, chosen);                      \
    const auto real = reinterpret_cast<decltype(&nccl##name)>(address);      \
    return call.Finish(real == nullptr ? ncclInvalidUsage : real arguments); \
  }
#define DOOR_Passed(result, name, parameters, arguments)
#define DOOR_Named(result, name, parameters, arguments)
#define DOOR_Moves(result, name, parameters, arguments) \
  DYNAMICCL_MOVE(result, name, parameters, arguments, false, DYNAMICCL_REAL(name))
#define DOOR_MovesAsConfigured(result, name, parameters, arguments) \
  DYNAMICCL_MOVE(result, name, parameters, arguments, ChoosesItself(config), DYNAMICCL_REAL(name))
#define DOOR_MovesFromInside(result, name, parameters, arguments) \
  DYNAMICCL_MOVE(result, name, parameters, arguments, false, BroadcastFor(__builtin_return_address(0)))
#define DYNAMICCL_DOOR(since, door, result, name, parameters, arguments) \
  DOOR_##door(result, name, parameters, arguments)

extern "C" {

DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_DOOR)
DYNAMICCL_NCCL_FURTHER_FUNCTIONS(DYNAMICCL_DOOR)

DYNAMICCL_EXPORT ncclResult_t ncclGroupStart() {
  const ReentryScope scope;
  return GroupStarted(scope, DYNAMICCL_FORWARD(GroupStart));
}

DYNAMICCL_EXPORT ncclResult_t ncclGroupEnd() {
  GroupEnd group;
  return group.Finish(DYNAMICCL_FORWARD(GroupEnd));
}

DYNAMICCL_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  GroupEnd group(/*simulated=*/true);
  return group.Finish(DYNAMICCL_FORWARD(GroupSimulateEnd, simInfo));
}

DYNAMICCL_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  const ReentryScope scope;
  const ncclResult_t result = DYNAMICCL_FORWARD(GetUniqueId, uniqueId);
  if (result == ncclSuccess && scope.outermost()) UniqueIdMade(*uniqueId);
  return result;
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  CommunicatorCreation creation(InitOrigin{commId, nranks, rank}, nullptr);
  if (ncclConfig_t* const config = creation.Config(nullptr))
    return creation.Finish(DYNAMICCL_FORWARD(CommInitRankConfig, comm, nranks, commId, rank, config), comm);
  return creation.Finish(DYNAMICCL_FORWARD(CommInitRank, comm, nranks, commId, rank), comm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId,
                                                     int rank, ncclConfig_t* config) {
  CommunicatorCreation creation(InitOrigin{commId, nranks, rank}, config);
  ncclConfig_t* const agreed = creation.Config(config);
  return creation.Finish(DYNAMICCL_FORWARD(CommInitRankConfig, comm, nranks, commId, rank, agreed), comm);
}

// The ranks meet at the address in the first id. The library refuses a call without ids.
DYNAMICCL_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                                       ncclUniqueId* commIds, ncclConfig_t* config) {
  static const ncclUniqueId kNone{};
  const bool given = nId > 0 && commIds != nullptr;
  CommunicatorCreation creation(InitOrigin{given ? *commIds : kNone, nranks, myrank}, config);
  ncclConfig_t* const agreed = creation.Config(config);
  return creation.Finish(
      DYNAMICCL_FORWARD(CommInitRankScalable, newcomm, nranks, myrank, nId, commIds, agreed), newcomm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  InitAllCreation creation(ndev);
  return creation.Finish(DYNAMICCL_FORWARD(CommInitAll, comm, ndev, devlist), comm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                                            ncclConfig_t* config) {
  CommunicatorCreation creation(SplitOrigin{comm, color}, config);
  return creation.Finish(DYNAMICCL_FORWARD(CommSplit, comm, color, key, newcomm, config), newcomm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                                             ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  const bool given = excludeRanksList != nullptr && excludeRanksCount > 0;
  CommunicatorCreation creation(
      ShrinkOrigin{comm, {excludeRanksList, given ? static_cast<size_t>(excludeRanksCount) : 0}}, config);
  return creation.Finish(
      DYNAMICCL_FORWARD(CommShrink, comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags),
      newcomm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId,
                                           int rank, ncclComm_t* newcomm, ncclConfig_t* config) {
  CommunicatorCreation creation(GrowOrigin{comm, uniqueId, nRanks, rank}, config);
  ncclConfig_t* const kept = creation.Config(config);
  return creation.Finish(DYNAMICCL_FORWARD(CommGrow, comm, nRanks, uniqueId, rank, newcomm, kept), newcomm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId) {
  const ReentryScope scope;
  const ncclResult_t result = DYNAMICCL_FORWARD(CommGetUniqueId, comm, uniqueId);
  if (result == ncclSuccess && scope.outermost()) GrowIdMade(comm, *uniqueId);
  return result;
}

// Calls that wait for other ranks must stop waiting for a revoked communicator.
DYNAMICCL_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  const ReentryScope scope;
  if (scope.outermost()) CommunicatorRevoked(comm);
  return DYNAMICCL_FORWARD(CommRevoke, comm, revokeFlags);
}

// The handle is forgotten before the library frees it, because the library may then give the same handle out
// again.
DYNAMICCL_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const ReentryScope scope;
  if (scope.outermost()) CommunicatorGone(comm);
  return DYNAMICCL_FORWARD(CommDestroy, comm);
}

DYNAMICCL_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const ReentryScope scope;
  if (scope.outermost()) CommunicatorGone(comm);
  return DYNAMICCL_FORWARD(CommAbort, comm);
}

DYNAMICCL_EXPORT void dynamicclMarkPhase(dynamicclPhase_t phase, int zero_stage, long long step) {
  MarkPhaseOfThisThread(phase, zero_stage, step);
}

DYNAMICCL_EXPORT void dynamicclMarkMemory(long long free_bytes, long long total_bytes) {
  MarkMemoryOfThisProcess(free_bytes, total_bytes);
}

DYNAMICCL_EXPORT void dynamicclMarkSamples(long long samples) {
  MarkSamplesOfThisProcess(samples);
}

DYNAMICCL_EXPORT void dynamicclMarkRole(dynamicclRole_t role) {
  MarkRoleOfThisThread(role);
}

DYNAMICCL_EXPORT int dynamicclAgreedValue(ncclComm_t comm, const char* name, int64_t fallback,
                                          int64_t* value) {
  return ReadAgreedValue(comm, name, fallback, value) ? 1 : 0;
}

DYNAMICCL_EXPORT int dynamicclProposeValue(ncclComm_t comm, const char* name, int64_t value) {
  return ProposeAgreedValue(comm, name, value) ? 1 : 0;
}

}  // extern "C"
