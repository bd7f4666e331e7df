// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner interface, version 5 (NCCL 2.28 and later).
#include "src/nccl_abi/tuner_v5.h"

#include "plugin/tuner/tuner_calls.h"

namespace dynamiccl {
namespace {

ncclResult_t Init(void** context, uint64_t communicator, size_t n_ranks, size_t n_nodes,
                  ncclDebugLogger_t logger, ncclNvlDomainInfo_v5_t* nvl_domains,
                  ncclTunerConstants_v5_t* constants) {
  *context = TunerSession::Begin({communicator, n_ranks, n_nodes, logger, nvl_domains, constants}).release();
  return ncclSuccess;
}

}  // namespace
}  // namespace dynamiccl

extern "C" __attribute__((visibility("default"))) const ncclTuner_v5_t ncclTunerPlugin_v5 = {
    "DynamICCL", dynamiccl::Init, dynamiccl::AnswerQuestion, dynamiccl::EndSession};
