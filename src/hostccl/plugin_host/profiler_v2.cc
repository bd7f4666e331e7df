// SPDX-License-Identifier: Apache-2.0
// The adapter for profiler version 2, which is like version 3 without kernel events. The only states of
// version 2 are those of proxies, which hostccl does not have, so states are dropped.
#include "src/nccl_abi/profiler_v2.h"

#include "src/hostccl/plugin_host/profiler_descriptor.h"
#include "src/hostccl/plugin_host/profiler_plugin.h"

namespace dynamiccl::hostccl {
namespace {

using Descriptor = ncclProfilerEventDescr_v2_t;

const ncclProfiler_v2_t* found = nullptr;

ncclResult_t Init(void** context, uint64_t, int* mask, const char*, int, int, int, ncclDebugLogger_t) {
  return found->init(context, mask);
}

bool Convert(const NewestDescriptor& event, Descriptor& old) {
  return ConvertTasks(event, old);
}

ncclResult_t StartEvent(void* context, void** handle, NewestDescriptor* event) {
  *handle = nullptr;
  Descriptor old;
  return Convert(*event, old) ? found->startEvent(context, handle, &old) : ncclSuccess;
}

// hostccl sends no state that version 2 knows.
ncclResult_t IgnoreState(void*, ncclProfilerEventState_t, ncclProfilerEventStateArgs_v7_t*) {
  return ncclSuccess;
}

}  // namespace

bool FindProfilerV2(const DynamicLibrary& library, ProfilerInterface& out) {
  found = static_cast<const ncclProfiler_v2_t*>(library.Symbol("ncclProfiler_v2"));
  if (found == nullptr) return false;
  out = {{.name = found->name,
          .init = Init,
          .startEvent = StartEvent,
          .stopEvent = found->stopEvent,
          .recordEventState = IgnoreState,
          .finalize = found->finalize},
         2};
  return true;
}

}  // namespace dynamiccl::hostccl
