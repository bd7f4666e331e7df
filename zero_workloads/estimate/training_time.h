// SPDX-License-Identifier: Apache-2.0
// How long a training run takes if nothing but computing takes time. The formula is that of Narayanan et al.,
// "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021, section 5.1.
#pragma once

namespace dynamiccl::zero {

// A training run: what is computed, and how fast.
struct TrainingRun {
  double parameters = 0;
  double tokens = 0;
  // True if the backward pass computes every block again from its checkpoint.
  bool recomputes = true;
  double devices = 1;
  // Floating-point operations per second that one device reaches in training.
  double operations_a_second = 0;
};

// Operations for one parameter and one token: 2 in the forward pass, 4 in the backward pass, and 2 more if
// the backward pass computes the forward pass again.
double OperationsOfParameter(bool recomputes);

// Seconds of the run. Embeddings, attention scores and communication take no time in this formula.
//
// Example: 175 billion parameters, 300 billion tokens, 1024 devices that each reach 140 TFLOPS, recomputing:
// 34 days, as the cited paper says.
double TrainingSeconds(const TrainingRun& run);

}  // namespace dynamiccl::zero
