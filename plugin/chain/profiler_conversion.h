// SPDX-License-Identifier: Apache-2.0
// Converts an event of one version of NCCL's profiler interface to an older version, as NCCL does for a
// plugin that knows no newer version (src/plugin/profiler/profiler_vN.cc of NCCL 2.30). The versions use the
// same names for the same things, so members are copied by name. Members that the older version does not have
// are dropped.
#pragma once

#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "src/collective/algorithm.h"
#include "src/collective/collective.h"
#include "src/collective/data_type.h"
#include "src/collective/protocol.h"
#include "src/nccl_abi/profiler_v1.h"
#include "src/nccl_abi/profiler_v2.h"
#include "src/nccl_abi/profiler_v3.h"
#include "src/nccl_abi/profiler_v4.h"
#include "src/nccl_abi/profiler_v5.h"
#include "src/nccl_abi/profiler_v6.h"
#include "src/nccl_abi/profiler_v7.h"

namespace dynamiccl {

template <int Version>
struct ProfilerAbi;
#define DYNAMICCL_PROFILER_ABI(version)                               \
  template <>                                                         \
  struct ProfilerAbi<version> {                                       \
    using Interface = ncclProfiler_v##version##_t;                    \
    using Descriptor = ncclProfilerEventDescr_v##version##_t;         \
    using StateArguments = ncclProfilerEventStateArgs_v##version##_t; \
    static constexpr const char* kSymbol = "ncclProfiler_v" #version; \
  };
DYNAMICCL_PROFILER_ABI(1)
DYNAMICCL_PROFILER_ABI(2)
DYNAMICCL_PROFILER_ABI(3)
DYNAMICCL_PROFILER_ABI(4)
DYNAMICCL_PROFILER_ABI(5)
DYNAMICCL_PROFILER_ABI(6)
DYNAMICCL_PROFILER_ABI(7)
#undef DYNAMICCL_PROFILER_ABI

// Copies a member such as an algorithm or a protocol. From version 2 of the interface on the member is a
// text, before that NCCL's number. A text for which NCCL has no number becomes `otherwise`, as in NCCL.
template <typename Enum, typename From, typename To>
void CopyName(std::optional<Enum> (*parse)(std::string_view), Enum otherwise, const From& from, To& to) {
  if constexpr (std::is_same_v<From, To>) {
    to = from;
  } else {
    to = static_cast<To>(from == nullptr ? otherwise : parse(from).value_or(otherwise));
  }
}

// Copies a member if both versions have it; else does nothing.
#define DYNAMICCL_COPY(member) \
  if constexpr (requires { to.member = from.member; }) to.member = from.member

// Copies a collective's event. The plain copies come first, then members that have another name or type in
// the older version.
template <typename From, typename To>
void CopyColl(const From& from, To& to) {
  DYNAMICCL_COPY(seqNumber);
  DYNAMICCL_COPY(sendBuff);
  DYNAMICCL_COPY(recvBuff);
  DYNAMICCL_COPY(count);
  DYNAMICCL_COPY(root);
  DYNAMICCL_COPY(name);
  DYNAMICCL_COPY(commHash);
  DYNAMICCL_COPY(nWarps);
  DYNAMICCL_COPY(nMaxChannels);
  DYNAMICCL_COPY(nChannels);
  DYNAMICCL_COPY(parentGroup);
  if constexpr (requires { to.nMaxChannels = from.nChannels; }) to.nMaxChannels = from.nChannels;
  CopyName<Collective>(ParseCollective, Collective::kSend, from.func, to.func);
  CopyName<DataType>(ParseDataType, DataType::kFloat64, from.datatype, to.datatype);
  CopyName<Algorithm>(ParseAlgorithm, Algorithm::kPat, from.algo, to.algo);
  CopyName<Protocol>(ParseProtocol, Protocol::kSimple, from.proto, to.proto);
}

template <typename From, typename To>
void CopyP2p(const From& from, To& to) {
  DYNAMICCL_COPY(buff);
  DYNAMICCL_COPY(count);
  DYNAMICCL_COPY(peer);
  DYNAMICCL_COPY(name);
  DYNAMICCL_COPY(commHash);
  DYNAMICCL_COPY(nChannels);
  DYNAMICCL_COPY(parentGroup);
  CopyName<Collective>(ParseCollective, Collective::kSend, from.func, to.func);
  CopyName<DataType>(ParseDataType, DataType::kFloat64, from.datatype, to.datatype);
}

// Copies structures that changed only by new members at their end.
template <typename From, typename To>
void CopyBegin(const From& from, To& to) {
  std::memcpy(static_cast<void*>(&to), &from, sizeof(from) < sizeof(to) ? sizeof(from) : sizeof(to));
}

// Up to version 4 the parent of a task is its Group event.
template <typename From, typename To, typename FromTask, typename ToTask>
void CopyParent(const FromTask& from_task, const ToTask&, const From& from, To& to) {
  to.parentObj = from.parentObj;
  if constexpr (
      requires(FromTask f) { f.parentGroup; } && !requires(ToTask t) { t.parentGroup; })
    to.parentObj = from_task.parentGroup;
}

// Converts events that came with version 3 and later. Returns false if the older version lacks the event.
template <typename From, typename To>
bool ConvertNewerEvent(const From& from, To& to) {
  if constexpr (requires {
                  from.netPlugin;
                  to.netPlugin;
                }) {
    if (from.type == ncclProfileNetPlugin) return CopyBegin(from.netPlugin, to.netPlugin), true;
  }
  if constexpr (requires {
                  from.groupApi;
                  to.groupApi;
                }) {
    if (from.type == ncclProfileGroupApi) return CopyBegin(from.groupApi, to.groupApi), true;
    if (from.type == ncclProfileCollApi) return CopyBegin(from.collApi, to.collApi), true;
    if (from.type == ncclProfileP2pApi) return CopyBegin(from.p2pApi, to.p2pApi), true;
    if (from.type == ncclProfileKernelLaunch) return CopyBegin(from.kernelLaunch, to.kernelLaunch), true;
  }
  if constexpr (requires {
                  from.ceColl;
                  to.ceColl;
                }) {
    if (from.type == ncclProfileCeColl) return CopyBegin(from.ceColl, to.ceColl), true;
    if (from.type == ncclProfileCeSync) return CopyBegin(from.ceCollSync, to.ceCollSync), true;
    if (from.type == ncclProfileCeBatch) return CopyBegin(from.ceCollBatch, to.ceCollBatch), true;
  }
  return false;
}

// Returns false if the older version does not know the event.
template <typename From, typename To>
bool ConvertEvent(const From& from, To& to) {
  to.type = static_cast<decltype(to.type)>(from.type);
  to.parentObj = from.parentObj;
  to.rank = from.rank;
  switch (from.type) {
    case ncclProfileGroup:
    case ncclProfileProxyCtrl:
      return true;
    case ncclProfileColl:
      CopyParent(from.coll, to.coll, from, to);
      return CopyColl(from.coll, to.coll), true;
    case ncclProfileP2p:
      CopyParent(from.p2p, to.p2p, from, to);
      return CopyP2p(from.p2p, to.p2p), true;
    case ncclProfileProxyOp:
      return CopyBegin(from.proxyOp, to.proxyOp), true;
    case ncclProfileProxyStep:
      return CopyBegin(from.proxyStep, to.proxyStep), true;
    case ncclProfileKernelCh:
      if constexpr (requires {
                      from.kernelCh;
                      to.kernelCh;
                    })
        return CopyBegin(from.kernelCh, to.kernelCh), true;
      return false;
    default:
      return ConvertNewerEvent(from, to);
  }
}

// Returns true if `version` of the profiler interface has the event state. `state` is the number that NCCL
// gives it. Version 4 replaced the states of proxies.
constexpr bool KnowsState(int version, int state) {
  if (version <= 3) return state == 8 || (state >= 9 && state <= 18);
  if (version == 4) return state >= 8 && state <= 22;
  if (version == 5) return state >= 8 && state <= 24;
  return state >= 8 && state <= (version == 6 ? 30 : 31);
}

// Copies the argument of a state: one number, at a place that depends on the version. Returns false if the
// older version does not know the state.
template <int ToVersion, typename From, typename To>
bool ConvertState(int state, const From* from, To& to) {
  if (!KnowsState(ToVersion, state)) return false;
  if (from == nullptr) return true;
  if constexpr (ToVersion <= 3) {
    if (state >= 13) to.proxyCtrl.appendedProxyOps = from->proxyCtrl.appendedProxyOps;
  } else {
    CopyBegin(*from, to);
  }
  return true;
}

#undef DYNAMICCL_COPY

}  // namespace dynamiccl
