// SPDX-License-Identifier: Apache-2.0
// The adapter for profiler version 6, which is like version 7 without user tags, kernel variants and kernel
// phases.
#include "src/nccl_abi/profiler_v6.h"

#include "src/hostccl/plugin_host/profiler_descriptor.h"
#include "src/hostccl/plugin_host/profiler_plugin.h"

namespace dynamiccl::hostccl {
namespace {

const ncclProfiler_v6_t* found = nullptr;

ncclResult_t StartEvent(void* context, void** handle, NewestDescriptor* event) {
  *handle = nullptr;
  ncclProfilerEventDescr_v6_t old;
  return ConvertWithParents(*event, old) ? found->startEvent(context, handle, &old) : ncclSuccess;
}

// Version 6 does not know kernel phases, so their states are dropped.
ncclResult_t RecordEventState(void* handle, ncclProfilerEventState_t state,
                              ncclProfilerEventStateArgs_v7_t* arguments) {
  if (state == ncclProfilerKernelPhaseStop) return ncclSuccess;
  ncclProfilerEventStateArgs_v6_t old{};
  if (arguments != nullptr) old.kernelCh.pTimer = arguments->kernelCh.pTimer;
  return found->recordEventState(handle, state, arguments == nullptr ? nullptr : &old);
}

}  // namespace

bool FindProfilerV6(const DynamicLibrary& library, ProfilerInterface& out) {
  found = static_cast<const ncclProfiler_v6_t*>(library.Symbol("ncclProfiler_v6"));
  if (found == nullptr) return false;
  out = {{.name = found->name,
          .init = found->init,
          .startEvent = StartEvent,
          .stopEvent = found->stopEvent,
          .recordEventState = RecordEventState,
          .finalize = found->finalize},
         6};
  return true;
}

}  // namespace dynamiccl::hostccl
