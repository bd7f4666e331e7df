// SPDX-License-Identifier: Apache-2.0
// The adapter for profiler version 3, which is like version 4 without the communicator in init and without
// time stamps. The only states of version 3 are those of proxies, which hostccl does not have, so states are
// dropped.
#include "src/nccl_abi/profiler_v3.h"

#include "src/hostccl/plugin_host/profiler_descriptor.h"
#include "src/hostccl/plugin_host/profiler_plugin.h"

namespace dynamiccl::hostccl {
namespace {

using Descriptor = ncclProfilerEventDescr_v3_t;

const ncclProfiler_v3_t* found = nullptr;

ncclResult_t Init(void** context, uint64_t, int* mask, const char*, int, int, int, ncclDebugLogger_t) {
  return found->init(context, mask);
}

// Kernel events of version 3 have a channel but no time.
bool Convert(const NewestDescriptor& event, Descriptor& old) {
  if (event.type != ncclProfileKernelCh) return ConvertTasks(event, old);
  old = FlatHead<Descriptor>(event);
  old.kernelCh.channelId = event.kernelCh.channelId;
  return true;
}

ncclResult_t StartEvent(void* context, void** handle, NewestDescriptor* event) {
  *handle = nullptr;
  Descriptor old;
  return Convert(*event, old) ? found->startEvent(context, handle, &old) : ncclSuccess;
}

// hostccl sends no state that version 3 knows.
ncclResult_t IgnoreState(void*, ncclProfilerEventState_t, ncclProfilerEventStateArgs_v7_t*) {
  return ncclSuccess;
}

}  // namespace

bool FindProfilerV3(const DynamicLibrary& library, ProfilerInterface& out) {
  found = static_cast<const ncclProfiler_v3_t*>(library.Symbol("ncclProfiler_v3"));
  if (found == nullptr) return false;
  out = {{.name = found->name,
          .init = Init,
          .startEvent = StartEvent,
          .stopEvent = found->stopEvent,
          .recordEventState = IgnoreState,
          .finalize = found->finalize},
         3};
  return true;
}

}  // namespace dynamiccl::hostccl
