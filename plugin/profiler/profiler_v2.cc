// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 2 (NCCL 2.24 and 2.25): no kernel is timed.
#include "src/nccl_abi/profiler_v2.h"

#include "plugin/profiler/profiler_door.h"

namespace dynamiccl {
namespace {

using Door = ProfilerDoor<ncclProfilerEventDescr_v2_t, ncclProfilerEventStateArgs_v2_t>;

ncclResult_t Init(void** context, int* mask) {
  *context = Door::Begin({.version = 2, .mask = mask});
  return ncclSuccess;
}

}  // namespace
}  // namespace dynamiccl

using dynamiccl::Door;
extern "C" __attribute__((visibility("default"))) const ncclProfiler_v2_t ncclProfiler_v2 = {
    "DynamICCL", dynamiccl::Init, Door::StartEvent, Door::StopEvent, Door::RecordEventState, Door::Finalize};
