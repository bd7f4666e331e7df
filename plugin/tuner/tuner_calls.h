// SPDX-License-Identifier: Apache-2.0
// The functions that several versions of NCCL's tuner interface have in common. The file of a version
// (tuner_vN.cc) has the other functions and the table of all functions.
#pragma once

#include "plugin/tuner/tuner_session.h"

namespace dynamiccl {

// Serves as getCollInfo of version 4 and later.
[[gnu::hot]] inline ncclResult_t AnswerQuestion(void* context, ncclFunc_t function, size_t bytes,
                                                int n_pipe_ops, float** table, int n_algorithms,
                                                int n_protocols, int registered, int* channels) {
  if (context == nullptr) return ncclSuccess;
  // The parameter has NCCL's type, but it points to one flat array of float.
  static_cast<TunerSession*>(context)->Answer({function, bytes, n_pipe_ops, reinterpret_cast<float*>(table),
                                               n_algorithms, n_protocols, registered, channels});
  return ncclSuccess;
}

// Serves as getChunkSize of version 6 and later.
inline ncclResult_t AnswerChunkSize(void* context, ncclFunc_t function, size_t bytes, int algorithm,
                                    int protocol, int channels, size_t* chunk_bytes) {
  if (context == nullptr) return ncclSuccess;
  return static_cast<TunerSession*>(context)->ChunkSize(function, bytes, algorithm, protocol, channels,
                                                        chunk_bytes);
}

// Serves as init of versions 2 to 4.
inline ncclResult_t BeginSession(size_t n_ranks, size_t n_nodes, ncclDebugLogger_t logger, void** context) {
  *context = TunerSession::Begin({0, n_ranks, n_nodes, logger, nullptr, nullptr}).release();
  return ncclSuccess;
}

// Serves as destroy of versions 2 to 4, and as finalize of later versions.
inline ncclResult_t EndSession(void* context) {
  delete static_cast<TunerSession*>(context);
  return ncclSuccess;
}

}  // namespace dynamiccl
