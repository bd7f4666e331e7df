// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 1 (NCCL 2.23): no kernel is timed.
#include "src/nccl_abi/profiler_v1.h"

#include "plugin/profiler/profiler_adapter.h"

using Adapter = dynamiccl::ProfilerAdapter<1>;
extern "C" __attribute__((visibility("default")))
const ncclProfiler_v1_t ncclProfiler_v1 = {"DynamICCL",        Adapter::BeginWithMask,    Adapter::StartEvent,
                                           Adapter::StopEvent, Adapter::RecordEventState, Adapter::Finalize};
