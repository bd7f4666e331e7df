// SPDX-License-Identifier: Apache-2.0
// The adapter for profiler version 4. Compared with version 5 it has no API events, and the communicator's
// hash comes after the mask in init. Version 4 gets only one state, the end of a kernel.
#include "src/nccl_abi/profiler_v4.h"

#include "src/hostccl/plugin_host/profiler_descriptor.h"
#include "src/hostccl/plugin_host/profiler_plugin.h"

namespace dynamiccl::hostccl {
namespace {

using Descriptor = ncclProfilerEventDescr_v4_t;

const ncclProfiler_v4_t* found = nullptr;

ncclResult_t Init(void** context, uint64_t id, int* mask, const char* name, int n_nodes, int n_ranks,
                  int rank, ncclDebugLogger_t logger) {
  return found->init(context, mask, name, id, n_nodes, n_ranks, rank, logger);
}

// Converts an event to version 4. Returns false for an event that version 4 does not know; its handle is
// null.
bool Convert(const NewestDescriptor& event, Descriptor& old) {
  old = FlatHead<Descriptor>(event);
  switch (event.type) {
    case ncclProfileGroup:
      return true;
    case ncclProfileColl:
      CopyCollective(event, old.coll);
      old.coll.nChannels = event.coll.nChannels;
      return true;
    case ncclProfileP2p:
      CopyTransfer(event, old.p2p);
      old.p2p.nChannels = event.p2p.nChannels;
      return true;
    case ncclProfileKernelCh:
      old.kernelCh.channelId = event.kernelCh.channelId;
      old.kernelCh.pTimer = event.kernelCh.pTimer;
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

// Of the states that hostccl records, version 4 has only the end of a kernel event. The other states are
// dropped.
ncclResult_t RecordEventState(void* handle, ncclProfilerEventState_t state,
                              ncclProfilerEventStateArgs_v7_t* arguments) {
  if (state != ncclProfilerKernelChStop) return ncclSuccess;
  ncclProfilerEventStateArgs_v4_t old{};
  old.kernelCh.pTimer = arguments->kernelCh.pTimer;
  return found->recordEventState(handle, state, &old);
}

}  // namespace

bool FindProfilerV4(const DynamicLibrary& library, ProfilerInterface& out) {
  found = static_cast<const ncclProfiler_v4_t*>(library.Symbol("ncclProfiler_v4"));
  if (found == nullptr) return false;
  out = {{.name = found->name,
          .init = Init,
          .startEvent = StartEvent,
          .stopEvent = found->stopEvent,
          .recordEventState = RecordEventState,
          .finalize = found->finalize},
         4};
  return true;
}

}  // namespace dynamiccl::hostccl
