// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 5 (NCCL 2.28): init takes the communicator before the mask.
#include "src/nccl_abi/profiler_v5.h"

#include "plugin/profiler/profiler_adapter.h"

using Adapter = dynamiccl::ProfilerAdapter<5>;
extern "C" __attribute__((visibility("default")))
const ncclProfiler_v5_t ncclProfiler_v5 = {"DynamICCL",        Adapter::BeginWithName,    Adapter::StartEvent,
                                           Adapter::StopEvent, Adapter::RecordEventState, Adapter::Finalize};
