// SPDX-License-Identifier: Apache-2.0
// The tuner plugin of the sweep. It forces the config that the sweep has set, without another communicator.
// The rank program opens the object that NCCL has loaded and calls these functions by name.
#pragma once

#include "src/nccl_abi/tuner_v5.h"

#ifdef __cplusplus
extern "C" {
#endif

// The plugin's latest view of NCCL's question.
typedef struct {
  // Constants given to the latest init.
  ncclTunerConstants_v5_t constants;
  int n_ranks;
  int n_nodes;
  // The latest table as NCCL gave it, in microseconds; negative: impossible.
  float table[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  // Number of questions so far.
  int questions;
  // Questions answered with the set config. Fewer than asked where NCCL had marked the entry impossible.
  int forced;
} dynamicclSweepView_t;

// Algorithm -1 leaves the choice to NCCL; channels 0 leaves their number to NCCL. Holds for all later calls
// of this process; set it while no call is being issued.
void dynamicclSweepForce(int algorithm, int protocol, int channels);
// Copies what the plugin saw last into `view`.
void dynamicclSweepView(dynamicclSweepView_t* view);

#ifdef __cplusplus
}
#endif
