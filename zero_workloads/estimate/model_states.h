// SPDX-License-Identifier: Apache-2.0
// What the states of a model take on each rank: parameters, gradients, and the optimizer's. Formulas of
// Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020,
// sections 3.1 and 5, without padding. Bytes as real numbers: a trillion parameters on three ranks is no
// whole number of them.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

// Bytes a parameter.
struct StateBytes {
  double parameter = 2;
  double gradient = 2;
  double optimizer = 12;  // the paper's K: fp32 master weight, momentum and variance
};

inline constexpr StateBytes kMixedPrecisionAdam{2, 2, 12};
// The parameters are the master weights.
inline constexpr StateBytes kFp32Adam{4, 4, 8};

struct ModelStates {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;

  double total() const { return parameters + gradients + optimizer; }
};

// On each of `ranks` data-parallel ranks that share the states of `parameters` numbers as `stage` says:
// 0 nothing, 1 P_os, 2 P_os+g, 3 P_os+g+p.
ModelStates StatesOf(double parameters, const StateBytes& bytes, int stage, int64_t ranks);

// The most parameters whose states fit into `device_bytes` of each rank.
double MostParameters(double device_bytes, const StateBytes& bytes, int stage, int64_t ranks);

// What a data-parallel rank sends in a step, in parameters of the model, when it has so many neighbours that
// each part of a buffer but its own counts (section 7): 2, an AllReduce being a ReduceScatter and an
// AllGather, and 3 in stage 3.
double CommunicationVolume(int stage);

}  // namespace dynamiccl::zero
