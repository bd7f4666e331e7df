// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner interface, version 4 (NCCL 2.24 to 2.27): init gets neither an identifier of the communicator
// nor NCCL's constants.
#include "src/nccl_abi/tuner_v4.h"

#include "plugin/tuner/tuner_session.h"

namespace dynamiccl {
namespace {

ncclResult_t Init(size_t n_ranks, size_t n_nodes, ncclDebugLogger_t logger, void** context) {
  *context = TunerSession::Begin({0, n_ranks, n_nodes, logger, nullptr, nullptr}).release();
  return ncclSuccess;
}

ncclResult_t GetCollInfo(void* context, ncclFunc_t function, size_t bytes, int n_pipe_ops, float** table,
                         int n_algorithms, int n_protocols, int registered, int* channels) {
  if (context == nullptr) return ncclSuccess;
  // The parameter has NCCL's type, but it points to one flat array of float.
  static_cast<TunerSession*>(context)->Answer({function, bytes, n_pipe_ops, reinterpret_cast<float*>(table),
                                               n_algorithms, n_protocols, registered, channels});
  return ncclSuccess;
}

ncclResult_t Destroy(void* context) {
  delete static_cast<TunerSession*>(context);
  return ncclSuccess;
}

}  // namespace
}  // namespace dynamiccl

extern "C" __attribute__((visibility("default"))) const ncclTuner_v4_t ncclTunerPlugin_v4 = {
    "DynamICCL", dynamiccl::Init, dynamiccl::GetCollInfo, dynamiccl::Destroy};
