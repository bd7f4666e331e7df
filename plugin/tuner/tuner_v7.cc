// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner interface, version 7 (NCCL 2.32.6 and later).
#include "src/nccl_abi/tuner_v7.h"

#include <optional>

#include "plugin/tuner/tuner_calls.h"
#include "src/nccl_plugin/tuner_constants_rows.h"

namespace dynamiccl {
namespace {

ncclResult_t Init(void** context, uint64_t communicator, size_t n_ranks, size_t n_nodes,
                  ncclDebugLogger_t logger, ncclNvlDomainInfo_v5_t* nvl_domains,
                  ncclTunerConstants_v7_t* constants) {
  // No decision depends on the row of Rubin. A chained plugin sees and changes all rows in `constants`; its
  // edits of the other rows are copied to `older`.
  std::optional<ncclTunerConstants_v5_t> older;
  if (constants != nullptr) older = WithoutRubinRow(*constants);
  *context = TunerSession::Begin({.communicator = communicator,
                                  .n_ranks = n_ranks,
                                  .n_nodes = n_nodes,
                                  .logger = logger,
                                  .nvl_domains = nvl_domains,
                                  .constants = older ? &*older : nullptr,
                                  .all_constants = constants,
                                  .asks_chunk_sizes = true})
                 .release();
  return ncclSuccess;
}

}  // namespace
}  // namespace dynamiccl

extern "C" __attribute__((visibility("default")))
const ncclTuner_v7_t ncclTunerPlugin_v7 = {"DynamICCL", dynamiccl::Init, dynamiccl::AnswerQuestion,
                                           dynamiccl::EndSession, dynamiccl::AnswerChunkSize};
