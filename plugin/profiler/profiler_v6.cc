// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 6 (NCCL 2.29 and 2.30): like version 5.
#include "src/nccl_abi/profiler_v6.h"

#include "plugin/profiler/profiler_adapter.h"

using Adapter = dynamiccl::ProfilerAdapter<6>;
extern "C" __attribute__((visibility("default")))
const ncclProfiler_v6_t ncclProfiler_v6 = {"DynamICCL",        Adapter::BeginWithName,    Adapter::StartEvent,
                                           Adapter::StopEvent, Adapter::RecordEventState, Adapter::Finalize};
