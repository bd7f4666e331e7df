// SPDX-License-Identifier: Apache-2.0
// Adapter for tuner version 5, which is version 7 without getChunkSize and without the row of Rubin in the
// constants.
#include "src/nccl_plugin/tuner_constants_rows.h"
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {
namespace {

const ncclTuner_v5_t* found = nullptr;

ncclResult_t Init(void** context, uint64_t communicator, size_t n_ranks, size_t n_nodes,
                  ncclDebugLogger_t logger, ncclNvlDomainInfo_v5_t* domains,
                  ncclTunerConstants_v7_t* constants) {
  return InitWithoutRubinRow(*found, context, communicator, n_ranks, n_nodes, logger, domains, constants);
}

}  // namespace

bool FindTunerV5(const DynamicLibrary& library, TunerInterface& out) {
  found = static_cast<const ncclTuner_v5_t*>(library.Symbol("ncclTunerPlugin_v5"));
  if (found == nullptr) return false;
  out = {{.name = found->name,
          .init = Init,
          .getCollInfo = found->getCollInfo,
          .finalize = found->finalize,
          .getChunkSize = nullptr},
         5};
  return true;
}

}  // namespace dynamiccl
