// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler interface, version 6 (NCCL 2.29 and 2.30): like version 5.
#include "src/nccl_abi/profiler_v6.h"

#include "plugin/profiler/profiler_adapter.h"

namespace dynamiccl {
namespace {

using Adapter = ProfilerAdapter<6>;

ncclResult_t Init(void** context, uint64_t communicator, int* mask, const char* name, int n_nodes,
                  int n_ranks, int rank, ncclDebugLogger_t logger) {
  return Adapter::Begin(context, {mask, communicator, name, n_nodes, n_ranks, rank, logger});
}

}  // namespace
}  // namespace dynamiccl

using dynamiccl::Adapter;
extern "C" __attribute__((visibility("default")))
const ncclProfiler_v6_t ncclProfiler_v6 = {"DynamICCL",        dynamiccl::Init,           Adapter::StartEvent,
                                           Adapter::StopEvent, Adapter::RecordEventState, Adapter::Finalize};
