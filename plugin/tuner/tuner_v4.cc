// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner interface, version 4 (NCCL 2.24 to 2.27): init gets neither an identifier of the communicator
// nor NCCL's constants.
#include "src/nccl_abi/tuner_v4.h"

#include "plugin/tuner/tuner_calls.h"

extern "C" __attribute__((visibility("default"))) const ncclTuner_v4_t ncclTunerPlugin_v4 = {
    "DynamICCL", dynamiccl::BeginSession, dynamiccl::AnswerQuestion, dynamiccl::EndSession};
