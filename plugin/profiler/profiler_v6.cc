// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 6 (NCCL 2.29 and 2.30): as version 5.
#include "src/nccl_abi/profiler_v6.h"

#include "plugin/profiler/profiler_door.h"

namespace dynamiccl {
namespace {

using Door = ProfilerDoor<ncclProfilerEventDescr_v6_t, ncclProfilerEventStateArgs_v6_t>;

ncclResult_t Init(void** context, uint64_t communicator, int* mask, const char*, int, int n_ranks, int,
                  ncclDebugLogger_t) {
  *context = Door::Begin({6, communicator, n_ranks, mask});
  return ncclSuccess;
}

}  // namespace
}  // namespace dynamiccl

using dynamiccl::Door;
extern "C" __attribute__((visibility("default"))) const ncclProfiler_v6_t ncclProfiler_v6 = {
    "DynamICCL", dynamiccl::Init, Door::StartEvent, Door::StopEvent, Door::RecordEventState, Door::Finalize};
