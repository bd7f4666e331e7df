// SPDX-License-Identifier: Apache-2.0
// Bytes that the states of a model take on each rank: parameters, gradients, and optimizer states. The
// formulas are those of Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models", SC 2020, sections 3.1 and 5, without padding. Bytes are real numbers, because the states rarely
// divide evenly among the ranks.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

// Bytes of each kind of state for one parameter.
struct StateBytes {
  double parameter = 2;
  double gradient = 2;
  // Bytes of optimizer states (K in the ZeRO paper). For mixed precision with Adam they are 12: fp32 master
  // weight, momentum and variance.
  double optimizer = 12;
};

// Mixed precision (fp16 or bf16) with Adam takes 2 + 2 + 12 = 16 bytes per parameter (the ZeRO paper, section
// 3.1).
inline constexpr StateBytes kMixedPrecisionAdam{2, 2, 12};
// fp32 with Adam takes 4 + 4 + 8 = 16 bytes per parameter. The parameters are the master weights in this
// case.
inline constexpr StateBytes kFp32Adam{4, 4, 8};

// Bytes of each kind of state on one rank.
struct ModelStates {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;

  double total() const { return parameters + gradients + optimizer; }
};

// The states on each of `ranks` data-parallel ranks. `stage` decides what is partitioned among the ranks: 0
// nothing, 1 the optimizer states (P_os in the ZeRO paper), 2 gradients as well (P_os+g), 3 parameters as
// well (P_os+g+p).
//
// Example: 7.5 billion parameters in mixed precision on 64 ranks take 120 GB at stage 0, and 31.4, 16.6 and
// 1.9 GB at stages 1 to 3 (the paper's Figure 1).
ModelStates StatesOf(double parameters, const StateBytes& bytes, int stage, int64_t ranks);

// The largest number of parameters whose states fit into `device_bytes` of each rank.
double MostParameters(double device_bytes, const StateBytes& bytes, int stage, int64_t ranks);

// The traffic that a data-parallel rank sends in a step, as a multiple of the model's parameters, for many
// ranks (the ZeRO paper, section 7). It is 2 for an AllReduce, which is a ReduceScatter and an AllGather. It
// is 3 in stage 3, which gathers parameters once more.
double CommunicationVolume(int stage);

}  // namespace dynamiccl::zero
