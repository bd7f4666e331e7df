// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 4 (NCCL 2.27): the first with the GPU's time stamps.
#include "src/nccl_abi/profiler_v4.h"

#include "plugin/profiler/profiler_adapter.h"

namespace dynamiccl {
namespace {

using Adapter = ProfilerAdapter<4>;

ncclResult_t Init(void** context, int* mask, const char* name, uint64_t communicator, int n_nodes,
                  int n_ranks, int rank, ncclDebugLogger_t logger) {
  return Adapter::Begin(context, {mask, communicator, name, n_nodes, n_ranks, rank, logger});
}

}  // namespace
}  // namespace dynamiccl

using dynamiccl::Adapter;
extern "C" __attribute__((visibility("default")))
const ncclProfiler_v4_t ncclProfiler_v4 = {"DynamICCL",        dynamiccl::Init,           Adapter::StartEvent,
                                           Adapter::StopEvent, Adapter::RecordEventState, Adapter::Finalize};
