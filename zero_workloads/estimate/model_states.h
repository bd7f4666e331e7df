// SPDX-License-Identifier: Apache-2.0
// Bytes that the states of a model take on each rank: parameters, gradients, and the optimizer's. The
// formulas are those of Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models", SC 2020, sections 3.1 and 5, without padding. Bytes are real numbers, since a trillion parameters
// on three ranks are no whole number of them.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

// Bytes of each kind of state for one parameter.
struct StateBytes {
  double parameter = 2;
  double gradient = 2;
  // The paper's K. For mixed precision with Adam it is 12: fp32 master weight, momentum and variance.
  double optimizer = 12;
};

// fp16 or bf16 with Adam: 2 + 2 + 12 = 16 bytes a parameter (section 3.1).
inline constexpr StateBytes kMixedPrecisionAdam{2, 2, 12};
// fp32 with Adam, where the parameters are the master weights: 4 + 4 + 8 = 16 bytes a parameter.
inline constexpr StateBytes kFp32Adam{4, 4, 8};

// Bytes of each kind of state on one rank.
struct ModelStates {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;

  double total() const { return parameters + gradients + optimizer; }
};

// The states on each of `ranks` data-parallel ranks, where `stage` decides what is partitioned among them: 0
// nothing, 1 the optimizer's states (P_os), 2 gradients as well (P_os+g), 3 parameters as well (P_os+g+p).
//
// Example: 7.5 billion parameters in mixed precision on 64 ranks take 120 GB at stage 0, and 31.4, 16.6 and
// 1.9 GB at stages 1 to 3 (the paper's Figure 1).
ModelStates StatesOf(double parameters, const StateBytes& bytes, int stage, int64_t ranks);

// The largest number of parameters whose states fit into `device_bytes` of each rank.
double MostParameters(double device_bytes, const StateBytes& bytes, int stage, int64_t ranks);

// The traffic that a data-parallel rank sends in a step, in units of the model's parameters and in the limit
// of many ranks (section 7). An AllReduce is a ReduceScatter and an AllGather, hence 2; stage 3 gathers
// parameters once more, hence 3.
double CommunicationVolume(int stage);

}  // namespace dynamiccl::zero
