// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 6 (NCCL 2.29 and 2.30): like version 5.
#include "src/nccl_abi/profiler_v6.h"

#include "plugin/profiler/profiler_door.h"

namespace dynamiccl {
namespace {

using Door = ProfilerDoor<6>;

ncclResult_t Init(void** context, uint64_t communicator, int* mask, const char* name, int n_nodes,
                  int n_ranks, int rank, ncclDebugLogger_t logger) {
  return Door::Begin(context, {mask, communicator, name, n_nodes, n_ranks, rank, logger});
}

}  // namespace
}  // namespace dynamiccl

using dynamiccl::Door;
extern "C" __attribute__((visibility("default"))) const ncclProfiler_v6_t ncclProfiler_v6 = {
    "DynamICCL", dynamiccl::Init, Door::StartEvent, Door::StopEvent, Door::RecordEventState, Door::Finalize};
