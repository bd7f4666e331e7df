// SPDX-License-Identifier: Apache-2.0
// Adapter for tuner version 6, which is version 7 without the row of Rubin in the constants.
#include "src/nccl_plugin/tuner_constants_rows.h"
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {
namespace {

const ncclTuner_v6_t* found = nullptr;

ncclResult_t Init(void** context, uint64_t communicator, size_t n_ranks, size_t n_nodes,
                  ncclDebugLogger_t logger, ncclNvlDomainInfo_v5_t* domains,
                  ncclTunerConstants_v7_t* constants) {
  return InitWithoutRubinRow(*found, context, communicator, n_ranks, n_nodes, logger, domains, constants);
}

}  // namespace

bool FindTunerV6(const DynamicLibrary& library, TunerInterface& out) {
  found = static_cast<const ncclTuner_v6_t*>(library.Symbol("ncclTunerPlugin_v6"));
  if (found == nullptr) return false;
  out = {{.name = found->name,
          .init = Init,
          .getCollInfo = found->getCollInfo,
          .finalize = found->finalize,
          .getChunkSize = found->getChunkSize},
         6};
  return true;
}

}  // namespace dynamiccl
