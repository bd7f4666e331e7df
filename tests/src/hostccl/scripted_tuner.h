// SPDX-License-Identifier: Apache-2.0
// The functions to which the scripted tuner plugins forward calls. The test program answers for them.
#pragma once

#include "src/nccl_abi/tuner_types.h"

extern "C" {

// The arguments of one question; -1 where the version does not pass the argument.
struct ScriptedQuestion {
  ncclFunc_t function;
  size_t bytes;
  int pipe_ops;
  int registered;
  int collnet;
  int nvls;
};

ncclResult_t scriptedInit(size_t n_ranks, size_t n_nodes, ncclDebugLogger_t logger, void** context);
// Tuner versions 3 and later call this to price the configs.
ncclResult_t scriptedPrice(void* context, const ScriptedQuestion* question, float** table, int* channels);
// Tuner version 2 calls this to name one config.
ncclResult_t scriptedName(void* context, const ScriptedQuestion* question, int* algorithm, int* protocol,
                          int* channels);
ncclResult_t scriptedFinalize(void* context);
// For versions 6 and 7. `rows` has `n_rows` rows, the first rows of llMaxBws. The test program may change
// them.
void scriptedBandwidths(double (*rows)[3], int n_rows);
}
