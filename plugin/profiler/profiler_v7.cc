// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 7 (NCCL 2.31 and later): like version 5.
#include "src/nccl_abi/profiler_v7.h"

#include "plugin/profiler/profiler_adapter.h"

using Adapter = dynamiccl::ProfilerAdapter<7>;
extern "C" __attribute__((visibility("default")))
const ncclProfiler_v7_t ncclProfiler_v7 = {"DynamICCL",        Adapter::BeginWithName,    Adapter::StartEvent,
                                           Adapter::StopEvent, Adapter::RecordEventState, Adapter::Finalize};
