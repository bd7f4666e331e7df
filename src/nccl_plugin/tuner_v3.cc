// SPDX-License-Identifier: Apache-2.0
// Adapter for tuner version 3, which is version 4 without the argument regBuff.
#include "src/nccl_abi/tuner_v3.h"

#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {
namespace {

const ncclTuner_v3_t* found = nullptr;

ncclResult_t Init(void** context, uint64_t, size_t n_ranks, size_t n_nodes, ncclDebugLogger_t logger,
                  ncclNvlDomainInfo_v5_t*, ncclTunerConstants_v7_t*) {
  return found->init(n_ranks, n_nodes, logger, context);
}

ncclResult_t GetCollInfo(void* context, ncclFunc_t function, size_t bytes, int n_pipe_ops, float** table,
                         int n_algorithms, int n_protocols, int, int* channels) {
  return found->getCollInfo(context, function, bytes, n_pipe_ops, table, n_algorithms, n_protocols, channels);
}

}  // namespace

bool FindTunerV3(const DynamicLibrary& library, TunerInterface& out) {
  found = static_cast<const ncclTuner_v3_t*>(library.Symbol("ncclTunerPlugin_v3"));
  if (found == nullptr) return false;
  out = {{.name = found->name,
          .init = Init,
          .getCollInfo = GetCollInfo,
          .finalize = found->destroy,
          .getChunkSize = nullptr},
         3};
  return true;
}

}  // namespace dynamiccl
