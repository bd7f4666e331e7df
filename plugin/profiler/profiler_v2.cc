// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 2 (NCCL 2.24 and 2.25): no kernel is timed.
#include "src/nccl_abi/profiler_v2.h"

#include "plugin/profiler/profiler_adapter.h"

using Adapter = dynamiccl::ProfilerAdapter<2>;
extern "C" __attribute__((visibility("default")))
const ncclProfiler_v2_t ncclProfiler_v2 = {"DynamICCL",        Adapter::BeginWithMask,    Adapter::StartEvent,
                                           Adapter::StopEvent, Adapter::RecordEventState, Adapter::Finalize};
