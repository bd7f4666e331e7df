// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner interface, version 7 (NCCL 2.32.6 and later).
#include "src/nccl_abi/tuner_v7.h"

#include <optional>

#include "plugin/tuner/tuner_session.h"
#include "src/nccl_plugin/tuner_constants_rows.h"

namespace dynamiccl {
namespace {

ncclResult_t Init(void** context, uint64_t communicator, size_t n_ranks, size_t n_nodes,
                  ncclDebugLogger_t logger, ncclNvlDomainInfo_v5_t* nvl_domains,
                  ncclTunerConstants_v7_t* constants) {
  // No decision depends on the row of Rubin. A chained plugin sees and changes all rows in `constants`; its
  // edits of the others are copied to `older`.
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

[[gnu::hot]] ncclResult_t GetCollInfo(void* context, ncclFunc_t function, size_t bytes, int n_pipe_ops,
                                      float** table, int n_algorithms, int n_protocols, int registered,
                                      int* channels) {
  if (context == nullptr) return ncclSuccess;
  // The parameter has NCCL's type, but it points to one flat array of float.
  static_cast<TunerSession*>(context)->Answer({function, bytes, n_pipe_ops, reinterpret_cast<float*>(table),
                                               n_algorithms, n_protocols, registered, channels});
  return ncclSuccess;
}

ncclResult_t GetChunkSize(void* context, ncclFunc_t function, size_t bytes, int algorithm, int protocol,
                          int channels, size_t* chunk_bytes) {
  if (context == nullptr) return ncclSuccess;
  return static_cast<TunerSession*>(context)->ChunkSize(function, bytes, algorithm, protocol, channels,
                                                        chunk_bytes);
}

ncclResult_t Finalize(void* context) {
  delete static_cast<TunerSession*>(context);
  return ncclSuccess;
}

}  // namespace
}  // namespace dynamiccl

extern "C" __attribute__((visibility("default"))) const ncclTuner_v7_t ncclTunerPlugin_v7 = {
    "DynamICCL", dynamiccl::Init, dynamiccl::GetCollInfo, dynamiccl::Finalize, dynamiccl::GetChunkSize};
