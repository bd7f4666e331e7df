// SPDX-License-Identifier: Apache-2.0
// Adapter for tuner version 4, which is version 5 without communicator id, NVLink domains and constants in
// init.
#include "src/nccl_abi/tuner_v4.h"

#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {
namespace {

const ncclTuner_v4_t* found = nullptr;

ncclResult_t Init(void** context, uint64_t, size_t n_ranks, size_t n_nodes, ncclDebugLogger_t logger,
                  ncclNvlDomainInfo_v5_t*, ncclTunerConstants_v7_t*) {
  return found->init(n_ranks, n_nodes, logger, context);
}

}  // namespace

bool FindTunerV4(const DynamicLibrary& library, TunerInterface& out) {
  found = static_cast<const ncclTuner_v4_t*>(library.Symbol("ncclTunerPlugin_v4"));
  if (found == nullptr) return false;
  out = {{.name = found->name,
          .init = Init,
          .getCollInfo = found->getCollInfo,
          .finalize = found->destroy,
          .getChunkSize = nullptr},
         4};
  return true;
}

}  // namespace dynamiccl
