// SPDX-License-Identifier: Apache-2.0
// A profiler plugin of version PROFILER_VERSION that forwards every event to the program. It is compiled once
// per version. The compiler drops members that the version's descriptor lacks.
#include "tests/src/hostccl/scripted_profiler.h"

#include <type_traits>

#include PROFILER_HEADER

#define GLUE_INNER(a, b, c) a##b##c
#define GLUE(a, b, c) GLUE_INNER(a, b, c)

namespace {

using Plugin = GLUE(ncclProfiler_v, PROFILER_VERSION, _t);
using Descriptor = GLUE(ncclProfilerEventDescr_v, PROFILER_VERSION, _t);
using StateArguments = GLUE(ncclProfilerEventStateArgs_v, PROFILER_VERSION, _t);

template <typename Coll>
void ReadColl(const Coll& coll, ScriptedEvent& event) {
  event.sequence = coll.seqNumber;
  event.count = coll.count;
  if constexpr (requires { coll.nChannels; }) {
    event.channels = coll.nChannels;
  } else {
    event.channels = coll.nMaxChannels;
  }
  if constexpr (std::is_same_v<decltype(coll.func), const char*>) {
    event.function = coll.func;
    event.type_name = coll.datatype;
    event.algorithm = coll.algo;
    event.protocol = coll.proto;
  } else {
    event.function_number = coll.func;
    event.algorithm_number = coll.algo;
  }
  if constexpr (requires { coll.parentGroup; }) event.parent_group = coll.parentGroup;
}

template <typename P2p>
void ReadP2p(const P2p& p2p, ScriptedEvent& event) {
  event.count = p2p.count;
  event.peer = p2p.peer;
  if constexpr (requires { p2p.nChannels; }) event.channels = p2p.nChannels;
  if constexpr (std::is_same_v<decltype(p2p.func), const char*>) {
    event.function = p2p.func;
    event.type_name = p2p.datatype;
  } else {
    event.function_number = p2p.func;
  }
  if constexpr (requires { p2p.parentGroup; }) event.parent_group = p2p.parentGroup;
}

template <typename Any>
void ReadKernel(const Any& descriptor, ScriptedEvent& event) {
  if constexpr (requires { descriptor.kernelCh; }) {
    event.channel = descriptor.kernelCh.channelId;
    if constexpr (requires { descriptor.kernelCh.pTimer; }) event.timer = descriptor.kernelCh.pTimer;
  }
}

template <typename Any>
void ReadNewer(const Any& descriptor, ScriptedEvent& event) {
  if constexpr (requires { descriptor.groupApi; }) {
    if (event.type == ncclProfileGroupApi) event.depth = descriptor.groupApi.groupDepth;
    if (event.type == ncclProfileCollApi) event.function = descriptor.collApi.func;
    if (event.type == ncclProfileP2pApi) event.function = descriptor.p2pApi.func;
  }
  if constexpr (requires { descriptor.kernelPhase; }) {
    if (event.type != ncclProfileKernelPhase) return;
    event.phase = descriptor.kernelPhase.phaseId;
    event.timer = descriptor.kernelPhase.pTimer;
  }
}

ncclResult_t Start(void* context, void** handle, Descriptor* descriptor) {
  ScriptedEvent event;
  event.type = descriptor->type;
  event.parent = descriptor->parentObj;
  event.rank = descriptor->rank;
  if (event.type == ncclProfileColl) ReadColl(descriptor->coll, event);
  if (event.type == ncclProfileP2p) ReadP2p(descriptor->p2p, event);
  if (event.type == ncclProfileKernelCh) ReadKernel(*descriptor, event);
  ReadNewer(*descriptor, event);
  return scriptedStart(context, handle, &event);
}

template <typename Arguments>
uint64_t TimerOf(const Arguments* arguments) {
  if constexpr (requires { arguments->kernelCh.pTimer; }) {
    return arguments == nullptr ? 0 : arguments->kernelCh.pTimer;
  }
  return 0;
}

ncclResult_t Record(void* handle, ncclProfilerEventState_t state, StateArguments* arguments) {
  return scriptedRecord(handle, state, TimerOf(arguments));
}

// The three signatures of init. The compiler picks the one that this version's struct has.
[[maybe_unused]] ncclResult_t Init(void** context, int* mask) {
  return scriptedInit(context, 0, -1, mask);
}
[[maybe_unused]] ncclResult_t Init(void** context, int* mask, const char*, uint64_t id, int, int, int rank,
                                   ncclDebugLogger_t) {
  return scriptedInit(context, id, rank, mask);
}
[[maybe_unused]] ncclResult_t Init(void** context, uint64_t id, int* mask, const char*, int, int, int rank,
                                   ncclDebugLogger_t) {
  return scriptedInit(context, id, rank, mask);
}

}  // namespace

#define SYMBOL GLUE(ncclProfiler_v, PROFILER_VERSION, )
extern "C" __attribute__((visibility("default"))) const Plugin SYMBOL;
const Plugin SYMBOL = {"scripted", Init, Start, scriptedStop, Record, scriptedFinalize};
