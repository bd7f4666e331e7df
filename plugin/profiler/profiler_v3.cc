// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 3 (NCCL 2.26): kernels are reported without the GPU's time stamps.
#include "src/nccl_abi/profiler_v3.h"

#include "plugin/profiler/profiler_adapter.h"

using Adapter = dynamiccl::ProfilerAdapter<3>;
extern "C" __attribute__((visibility("default")))
const ncclProfiler_v3_t ncclProfiler_v3 = {"DynamICCL",        Adapter::BeginWithMask,    Adapter::StartEvent,
                                           Adapter::StopEvent, Adapter::RecordEventState, Adapter::Finalize};
