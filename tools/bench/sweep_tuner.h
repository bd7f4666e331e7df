// SPDX-License-Identifier: Apache-2.0
// The tuner plugin of the sweep. It forces the config that the sweep has set, without another communicator.
// The rank program opens the object that NCCL has loaded and calls these functions by name.
#pragma once

#include "src/nccl_abi/tuner_v5.h"

#ifdef __cplusplus
extern "C" {
#endif

// What NCCL passed to the plugin in its latest question.
typedef struct {
  // Constants given to the latest init.
  ncclTunerConstants_v5_t constants;
  int n_ranks;
  int n_nodes;
  // The latest table as NCCL gave it, in microseconds; negative: impossible.
  float table[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  // Number of questions so far.
  int questions;
  // Number of questions that the plugin answered with the forced config. It is lower than `questions` if NCCL
  // had marked the config impossible.
  int forced;
} dynamicclSweepView_t;

// Forces a config for all later calls of this process. Algorithm -1 leaves the whole choice to NCCL, channels
// 0 only their number. Call it while no call is being issued.
void dynamicclSweepForce(int algorithm, int protocol, int channels);
// Copies the plugin's latest view into `view`.
void dynamicclSweepView(dynamicclSweepView_t* view);

#ifdef __cplusplus
}
#endif
