// SPDX-License-Identifier: Apache-2.0
#include "src/nccl_abi/tuner_v2.h"
#include "tests/src/hostccl/scripted_tuner.h"

namespace {

ncclResult_t Answer(void* context, ncclFunc_t function, size_t bytes, int collnet, int nvls, int pipe_ops,
                    int* algorithm, int* protocol, int* channels) {
  const ScriptedQuestion question{function, bytes, pipe_ops, -1, collnet, nvls};
  return scriptedName(context, &question, algorithm, protocol, channels);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ncclTuner_v2_t ncclTunerPlugin_v2;
const ncclTuner_v2_t ncclTunerPlugin_v2 = {"scripted v2", scriptedInit, Answer, scriptedFinalize};
