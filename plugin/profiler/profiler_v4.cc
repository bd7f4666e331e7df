// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 4 (NCCL 2.27): the first with stamps.
#include "src/nccl_abi/profiler_v4.h"

#include "plugin/profiler/profiler_door.h"

namespace dynamiccl {
namespace {

using Door = ProfilerDoor<ncclProfilerEventDescr_v4_t, ncclProfilerEventStateArgs_v4_t>;

ncclResult_t Init(void** context, int* mask, const char*, uint64_t communicator, int, int n_ranks, int,
                  ncclDebugLogger_t) {
  *context = Door::Begin({4, communicator, n_ranks, mask});
  return ncclSuccess;
}

}  // namespace
}  // namespace dynamiccl

using dynamiccl::Door;
extern "C" __attribute__((visibility("default"))) const ncclProfiler_v4_t ncclProfiler_v4 = {
    "DynamICCL", dynamiccl::Init, Door::StartEvent, Door::StopEvent, Door::RecordEventState, Door::Finalize};
