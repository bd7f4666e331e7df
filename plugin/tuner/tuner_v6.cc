// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner interface, version 6 (NCCL 2.30.3 and later).
#include "src/nccl_abi/tuner_v6.h"

#include "plugin/tuner/tuner_session.h"

namespace dynamiccl {
namespace {

ncclResult_t Init(void** context, uint64_t communicator, size_t n_ranks, size_t n_nodes,
                  ncclDebugLogger_t logger, ncclNvlDomainInfo_v5_t* nvl_domains,
                  ncclTunerConstants_v5_t* constants) {
  *context =
      TunerSession::Begin({communicator, n_ranks, n_nodes, logger, nvl_domains, constants, nullptr, true})
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

extern "C" __attribute__((visibility("default"))) const ncclTuner_v6_t ncclTunerPlugin_v6 = {
    "DynamICCL", dynamiccl::Init, dynamiccl::GetCollInfo, dynamiccl::Finalize, dynamiccl::GetChunkSize};
