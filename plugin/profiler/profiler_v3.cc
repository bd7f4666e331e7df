// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 3 (NCCL 2.26): kernels are reported without the GPU's time stamps.
#include "src/nccl_abi/profiler_v3.h"

#include "plugin/profiler/profiler_door.h"

namespace dynamiccl {
namespace {

using Door = ProfilerDoor<3>;

ncclResult_t Init(void** context, int* mask) {
  return Door::Begin(context, {.mask = mask});
}

}  // namespace
}  // namespace dynamiccl

using dynamiccl::Door;
extern "C" __attribute__((visibility("default"))) const ncclProfiler_v3_t ncclProfiler_v3 = {
    "DynamICCL", dynamiccl::Init, Door::StartEvent, Door::StopEvent, Door::RecordEventState, Door::Finalize};
