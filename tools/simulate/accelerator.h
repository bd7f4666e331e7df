// SPDX-License-Identifier: Apache-2.0
// Models how long a GPU computes on a transformer block: a roofline of matrix products in whole tiles, and of
// the memory traffic of everything else. It has few constants, the same for every simulated point.
#pragma once

#include <cstdint>
#include <string_view>

namespace dynamiccl {

// One kind of GPU.
struct Accelerator {
  std::string_view name;
  // Operations per second that matrix products reach in practice; `source` says where the number comes from.
  double matrix_flops = 0;
  // Number of multiprocessors. Each works on one tile of a matrix product at a time.
  int multiprocessors = 0;
  // Bandwidth of the GPU's own memory in GB/s.
  double memory_gbps = 0;
  double memory_bytes = 0;
  double host_gbps = 0;  // GB/s to the host's memory, in one direction
  // Number of times that the attention's scores are read from or written to memory: 8.5 unfused, 4 with a
  // fused softmax, 0 when they are kept on chip.
  double score_passes = 0;
  // Source of matrix_flops; the other values are from the data sheet.
  std::string_view source;
};

// Returns the GPU called "v100", "a100" or "h100"; null for any other name.
const Accelerator* FindAccelerator(std::string_view name);

// The work of one rank for one transformer block like GPT-2's, in 16-bit numbers.
struct BlockWork {
  // Number of sequences that this rank computes.
  int64_t sequences = 1;
  int64_t sequence = 1024;
  int64_t hidden = 0;
  // Number of attention heads; 0: one head for each 128 elements of `hidden`.
  int64_t heads = 0;
  int64_t tensor_parallel = 1;
};

// Floating-point operations of one forward pass of the block on this rank: (24 b s h^2 + 4 b s^2 h) / t, with
// b sequences of s tokens, width h and t tensor-parallel ranks (Narayanan et al., arXiv 2104.04473,
// appendix). A backward pass counts twice that, a recomputation once.
double ForwardFlops(const BlockWork& work);
// Nanoseconds of one forward pass. Matrix products work in tiles of 128 x 128 (NVIDIA, "Matrix Multiplication
// Background User's Guide"). The last wave of tiles takes as long as a full one, so a rank with a narrow
// share of a layer computes inefficiently.
double ForwardNs(const Accelerator& accelerator, const BlockWork& work);

}  // namespace dynamiccl
