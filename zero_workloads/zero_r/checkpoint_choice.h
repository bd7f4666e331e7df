// SPDX-License-Identifier: Apache-2.0
// Whether a run should keep activations, checkpoint them, divide the checkpoints (P_a) or move them to host
// memory (P_a+cpu): sections 4.2.1, 6.1 and 8 of the ZeRO paper (estimate/model_states.h) as one comparison
// of times among what fits.
#pragma once

#include <string>

#include "zero_workloads/estimate/memory_estimate.h"

namespace dynamiccl::zero {

// Of one rank.
struct Hardware {
  double memory_bytes = 0;
  double flops = 0;             // a second
  double tensor_bandwidth = 0;  // bytes a second, to the ranks of its tensor-parallel group
  double data_bandwidth = 0;    // to those of its data-parallel group
  double host_bandwidth = 0;    // between the device and host memory, one way
};

struct CheckpointQuestion {
  EstimateSettings run;  // needs a shape; its checkpoints are what is asked
  int stage = 0;
  Hardware hardware;
  // The batch may be doubled as long as it fits: data-parallel communication is paid once a step, whatever
  // the batch.
  bool batch_may_grow = false;
};

// Seconds of a step on one rank. Compute is 2 operations a parameter and token forward, 4 backward, 2 for the
// recomputation; a block is 2 AllReduces of its input forward, 2 backward, 2 in the recomputation, and with
// P_a 1 AllGather; each checkpoint moves to the host and back. Gradients and parameters move beside compute.
struct StepTime {
  double compute = 0;
  double tensor = 0;
  double data = 0;
  double host = 0;

  double total() const;
};
StepTime StepTimeOf(const CheckpointQuestion& question, Checkpoints checkpoints, int64_t batch);
// Bytes on the device.
double MemoryOf(const CheckpointQuestion& question, Checkpoints checkpoints, int64_t batch);

// Operations of a step for each byte of checkpoints: linear in the hidden size, whatever the batch and the
// division. Moving checkpoints costs this many operations' time at (operations a second) / bandwidth.
double ArithmeticIntensity(const TransformerShape& shape, double element_bytes);

struct CheckpointChoice {
  Checkpoints checkpoints = Checkpoints::kNone;
  int64_t batch = 0;   // of this rank; the asked one unless it may grow
  bool fits = true;    // false: nothing does, and this takes least
  std::string reason;  // one line
};
// The least time a sequence among what fits.
CheckpointChoice ChooseCheckpoints(const CheckpointQuestion& question);

}  // namespace dynamiccl::zero
