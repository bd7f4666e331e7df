// SPDX-License-Identifier: Apache-2.0
// Chooses what a run does with activations: it keeps them, checkpoints them, partitions the checkpoints (P_a
// in the ZeRO paper) or moves the partitioned checkpoints to host memory (P_a+cpu). The choice has the
// shortest estimated time among those that fit into memory, after sections 4.2.1, 6.1 and 8 of the ZeRO paper
// (estimate/model_states.h).
#pragma once

#include <string>

#include "zero_workloads/estimate/memory_estimate.h"

namespace dynamiccl::zero {

// The speed and the memory of one rank.
struct Hardware {
  double memory_bytes = 0;
  // Floating-point operations per second.
  double flops = 0;
  // Bytes per second to the ranks of the tensor-parallel group.
  double tensor_bandwidth = 0;
  // Bytes per second to the ranks over which ZeRO partitions.
  double data_bandwidth = 0;
  // Bytes per second between device and host memory, in one direction.
  double host_bandwidth = 0;
};

// The run for which checkpoints are chosen.
struct CheckpointQuestion {
  // The run's settings. They must have a shape. Their own choice of checkpoints is ignored.
  EstimateSettings run;
  int stage = 0;
  Hardware hardware;
  // True if the batch may be doubled as long as it fits. A larger batch saves time, because data-parallel
  // communication happens once in each step, whatever the batch.
  bool batch_may_grow = false;
};

// Seconds of a step on one rank. The model of the time, for P parameters, T tokens and I the bytes of a
// block's input:
//
// Compute takes 2 P T operations forward, 4 P T backward and 2 P T for a recomputation. Each block needs 2
// AllReduces of I forward, 2 backward and 2 in the recomputation, and with P_a (partitioned checkpoints) 1
// AllGather. With P_a+cpu (partitioned checkpoints in host memory) each checkpoint moves to the host and
// back. Gradients and parameters are transferred while compute goes on.
struct StepTime {
  double compute = 0;
  double tensor = 0;
  double data = 0;
  double host = 0;

  // The longer of compute and data-parallel communication, plus the transfers that cannot overlap with
  // compute.
  double total() const;
};
// The time of a step with `batch` sequences and these checkpoints.
StepTime StepTimeOf(const CheckpointQuestion& question, Checkpoints checkpoints, int64_t batch);
// Bytes that the run takes on the device.
double MemoryOf(const CheckpointQuestion& question, Checkpoints checkpoints, int64_t batch);

// Floating-point operations of a step for each byte of checkpoints. The number is linear in the hidden size
// and does not depend on batch and tensor-parallel degree (the ZeRO paper, section 4.2.1). Moving checkpoints
// to the host is hidden if this number exceeds (operations per second) / (bytes per second).
double ArithmeticIntensity(const TransformerShape& shape, double element_bytes);

// The answer to a CheckpointQuestion.
struct CheckpointChoice {
  Checkpoints checkpoints = Checkpoints::kNone;
  // Number of sequences that this rank computes at a time. It is the question's number unless the batch may
  // grow.
  int64_t batch = 0;
  // False if no choice fits into memory. The choice then is the one that takes the least memory.
  bool fits = true;
  // The reason for the choice, as one line for the user.
  std::string reason;
};
// The choice with the least time for each sequence among those that fit.
CheckpointChoice ChooseCheckpoints(const CheckpointQuestion& question);

}  // namespace dynamiccl::zero
