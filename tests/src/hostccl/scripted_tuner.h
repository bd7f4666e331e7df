// SPDX-License-Identifier: Apache-2.0
// What the scripted tuner plugins of older versions forward to: the test program answers for them.
#pragma once

#include "src/nccl_abi/tuner_types.h"

extern "C" {

// What one question carried; -1: the version does not tell.
struct ScriptedQuestion {
  ncclFunc_t function;
  size_t bytes;
  int pipe_ops;
  int registered;
  int collnet;
  int nvls;
};

ncclResult_t scriptedInit(size_t n_ranks, size_t n_nodes, ncclDebugLogger_t logger, void** context);
// Versions 3 and later.
ncclResult_t scriptedPrice(void* context, const ScriptedQuestion* question, float** table, int* channels);
// Version 2.
ncclResult_t scriptedName(void* context, const ScriptedQuestion* question, int* algorithm, int* protocol,
                          int* channels);
ncclResult_t scriptedFinalize(void* context);
// Versions 6 and 7: the first of `rows` rows of llMaxBws, which the test program may change.
void scriptedBandwidths(double (*rows)[3], int n_rows);
}
