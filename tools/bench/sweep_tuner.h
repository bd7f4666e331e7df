// SPDX-License-Identifier: Apache-2.0
// The tuner plugin of the sweep: forces the config that the sweep has set, without another communicator init.
// The rank program opens the same object that NCCL loads and calls these functions by name.
#pragma once

#include "src/nccl_abi/tuner_v5.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the plugin saw last.
typedef struct {
  ncclTunerConstants_v5_t constants;  // given to the latest init
  int n_ranks;
  int n_nodes;
  // The latest table as NCCL gave it, microseconds; negative: impossible.
  float table[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  int questions;
  int forced;  // questions answered with the set config; less than asked where NCCL had the entry as
               // impossible
} dynamicclSweepView_t;

// Algorithm -1: leave NCCL's choice. channels 0: leave NCCL's number. Holds for all later calls of this
// process; set it while no call is being issued.
void dynamicclSweepForce(int algorithm, int protocol, int channels);
void dynamicclSweepView(dynamicclSweepView_t* view);

#ifdef __cplusplus
}
#endif
