// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 5 (NCCL 2.28): init takes the communicator before the mask.
#include "src/nccl_abi/profiler_v5.h"

#include "plugin/profiler/profiler_adapter.h"

namespace dynamiccl {
namespace {

using Adapter = ProfilerAdapter<5>;

ncclResult_t Init(void** context, uint64_t communicator, int* mask, const char* name, int n_nodes,
                  int n_ranks, int rank, ncclDebugLogger_t logger) {
  return Adapter::Begin(context, {mask, communicator, name, n_nodes, n_ranks, rank, logger});
}

}  // namespace
}  // namespace dynamiccl

using dynamiccl::Adapter;
extern "C" __attribute__((visibility("default")))
const ncclProfiler_v5_t ncclProfiler_v5 = {"DynamICCL",        dynamiccl::Init,           Adapter::StartEvent,
                                           Adapter::StopEvent, Adapter::RecordEventState, Adapter::Finalize};
