// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 1 (NCCL 2.23): no kernel is timed.
#include "src/nccl_abi/profiler_v1.h"

#include "plugin/profiler/profiler_adapter.h"

namespace dynamiccl {
namespace {

using Adapter = ProfilerAdapter<1>;

ncclResult_t Init(void** context, int* mask) {
  return Adapter::Begin(context, {.mask = mask});
}

}  // namespace
}  // namespace dynamiccl

using dynamiccl::Adapter;
extern "C" __attribute__((visibility("default")))
const ncclProfiler_v1_t ncclProfiler_v1 = {"DynamICCL",        dynamiccl::Init,           Adapter::StartEvent,
                                           Adapter::StopEvent, Adapter::RecordEventState, Adapter::Finalize};
