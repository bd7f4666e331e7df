// SPDX-License-Identifier: Apache-2.0
// The adapter for profiler version 1, in which collectives and data types are numbers and not names. The only
// states of version 1 are those of proxies, which hostccl does not have, so states are dropped.
#include "src/nccl_abi/profiler_v1.h"

#include "src/collective/algorithm.h"
#include "src/collective/collective.h"
#include "src/collective/data_type.h"
#include "src/collective/protocol.h"
#include "src/hostccl/plugin_host/profiler_descriptor.h"
#include "src/hostccl/plugin_host/profiler_plugin.h"

namespace dynamiccl::hostccl {
namespace {

using Descriptor = ncclProfilerEventDescr_v1_t;

const ncclProfiler_v1_t* found = nullptr;

ncclResult_t Init(void** context, uint64_t, int* mask, const char*, int, int, int, ncclDebugLogger_t) {
  return found->init(context, mask);
}

// Returns the number of a name. hostccl itself wrote the name, so the name is always known.
template <typename T>
uint8_t NumberOf(std::optional<T> (*parse)(std::string_view), const char* name) {
  return static_cast<uint8_t>(parse(name).value());
}

void CopyColl(const NewestDescriptor& event, Descriptor& old) {
  old.coll.seqNumber = event.coll.seqNumber;
  old.coll.func = NumberOf<Collective>(ParseCollective, event.coll.func);
  old.coll.sendBuff = event.coll.sendBuff;
  old.coll.recvBuff = event.coll.recvBuff;
  old.coll.count = event.coll.count;
  old.coll.root = event.coll.root;
  old.coll.datatype = NumberOf<DataType>(ParseDataType, event.coll.datatype);
  old.coll.nMaxChannels = event.coll.nChannels;
  old.coll.nWarps = event.coll.nWarps;
  old.coll.algo = NumberOf<Algorithm>(ParseAlgorithm, event.coll.algo);
  old.coll.proto = NumberOf<Protocol>(ParseProtocol, event.coll.proto);
}

// Converts an event to version 1. Returns false for an event that version 1 does not know; its handle is
// null.
bool Convert(const NewestDescriptor& event, Descriptor& old) {
  old = FlatHead<Descriptor>(event);
  switch (event.type) {
    case ncclProfileGroup:
      return true;
    case ncclProfileColl:
      CopyColl(event, old);
      return true;
    case ncclProfileP2p:
      old.p2p.func = NumberOf<Collective>(ParseCollective, event.p2p.func);
      old.p2p.buff = event.p2p.buff;
      old.p2p.datatype = NumberOf<DataType>(ParseDataType, event.p2p.datatype);
      old.p2p.count = event.p2p.count;
      old.p2p.peer = event.p2p.peer;
      return true;
    default:
      return false;
  }
}

ncclResult_t StartEvent(void* context, void** handle, NewestDescriptor* event) {
  *handle = nullptr;
  Descriptor old;
  return Convert(*event, old) ? found->startEvent(context, handle, &old) : ncclSuccess;
}

// hostccl sends no state that version 1 knows.
ncclResult_t IgnoreState(void*, ncclProfilerEventState_t, ncclProfilerEventStateArgs_v7_t*) {
  return ncclSuccess;
}

}  // namespace

bool FindProfilerV1(const DynamicLibrary& library, ProfilerInterface& out) {
  found = static_cast<const ncclProfiler_v1_t*>(library.Symbol("ncclProfiler_v1"));
  if (found == nullptr) return false;
  out = {{.name = found->name,
          .init = Init,
          .startEvent = StartEvent,
          .stopEvent = found->stopEvent,
          .recordEventState = IgnoreState,
          .finalize = found->finalize},
         1};
  return true;
}

}  // namespace dynamiccl::hostccl
