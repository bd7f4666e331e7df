// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner interface, version 3 (NCCL 2.22 and 2.23): like version 4, but without the flag of registered
// buffers.
#include "src/nccl_abi/tuner_v3.h"

#include "plugin/tuner/tuner_calls.h"

namespace dynamiccl {
namespace {

ncclResult_t GetCollInfo(void* context, ncclFunc_t function, size_t bytes, int n_pipe_ops, float** table,
                         int n_algorithms, int n_protocols, int* channels) {
  return AnswerQuestion(context, function, bytes, n_pipe_ops, table, n_algorithms, n_protocols,
                        /*registered=*/0, channels);
}

}  // namespace
}  // namespace dynamiccl

extern "C" __attribute__((visibility("default"))) const ncclTuner_v3_t ncclTunerPlugin_v3 = {
    "DynamICCL", dynamiccl::BeginSession, dynamiccl::GetCollInfo, dynamiccl::EndSession};
