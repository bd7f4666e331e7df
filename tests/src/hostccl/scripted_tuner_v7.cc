// SPDX-License-Identifier: Apache-2.0
#include "src/nccl_abi/tuner_v7.h"
#include "tests/src/hostccl/scripted_tuner.h"

namespace {

ncclResult_t Init(void** context, uint64_t, size_t n_ranks, size_t n_nodes, ncclDebugLogger_t logger,
                  ncclNvlDomainInfo_v5_t*, ncclTunerConstants_v7_t* constants) {
  if (constants != nullptr) scriptedBandwidths(constants->llMaxBws, 5);
  return scriptedInit(n_ranks, n_nodes, logger, context);
}

ncclResult_t Answer(void* context, ncclFunc_t function, size_t bytes, int pipe_ops, float** table, int, int,
                    int registered, int* channels) {
  const ScriptedQuestion question{function, bytes, pipe_ops, registered, -1, -1};
  return scriptedPrice(context, &question, table, channels);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ncclTuner_v7_t ncclTunerPlugin_v7;
const ncclTuner_v7_t ncclTunerPlugin_v7 = {"scripted v7", Init, Answer, scriptedFinalize, nullptr};
