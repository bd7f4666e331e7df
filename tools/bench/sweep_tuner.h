// SPDX-License-Identifier: Apache-2.0
// The tuner plugin of the sweep. It forces the config that the sweep has set, so all configs are timed on one
// communicator. The program that runs a rank opens the plugin that NCCL has loaded and calls these functions
// by name.
#pragma once

#include "src/nccl_abi/tuner_v5.h"

#ifdef __cplusplus
extern "C" {
#endif

// Holds what NCCL passed to the plugin when it last asked for a config.
typedef struct {
  // The constants that NCCL passed to the plugin's latest init.
  ncclTunerConstants_v5_t constants;
  int n_ranks;
  int n_nodes;
  // The latest cost table as NCCL passed it, in microseconds; a negative time marks an impossible pair.
  float table[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  // Number of times that NCCL has asked the plugin.
  int questions;
  // Number of times that the plugin answered with the forced config. It is lower than `questions` if NCCL had
  // marked the config as impossible.
  int forced;
} dynamicclSweepView_t;

// Forces a config for all later calls of this process. With algorithm -1, NCCL makes the whole choice; with
// channels 0, NCCL chooses the number of channels. Do not call it while another thread issues a collective.
void dynamicclSweepForce(int algorithm, int protocol, int channels);
// Copies what NCCL passed most recently, and the counts, into `view`.
void dynamicclSweepView(dynamicclSweepView_t* view);

#ifdef __cplusplus
}
#endif
