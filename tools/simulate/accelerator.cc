// SPDX-License-Identifier: Apache-2.0
// The table of GPUs, and the roofline model of their computing time.
#include "tools/simulate/accelerator.h"

#include <array>
#include <cmath>

namespace dynamiccl {
namespace {

// Length of a side of a matrix product's tile, in elements.
constexpr double kTile = 128;
// Bytes of an element: matrices are in 16-bit numbers.
constexpr double kElementBytes = 2;

// Each GPU's matrix_flops is computed from one published training run, such that this file reproduces the
// throughput of that run (tests/tools/simulate/accelerator_test.cc). The runs used one GPU, or had little
// communication compared with computing.
constexpr std::array kAccelerators = {
    Accelerator{"v100", 56.2e12, 80, 900, 34.09e9, 12, 8.5,
                "39 TFLOP/s of a 1.2B model on one V100 (Megatron-LM, arXiv 1909.08053, section 1)"},
    Accelerator{"a100", 191e12, 108, 2039, 85.9e9, 24, 4,
                "137 TFLOP/s of a 1.7B model without tensor parallelism (arXiv 2104.04473, table 1)"},
    Accelerator{"h100", 484e12, 132, 3350, 85.9e9, 50, 0,
                "430 TFLOP/s of Llama 3 405B on 8192 GPUs (arXiv 2407.21783, table 4)"},
};

// Nanoseconds of the matrix product of [m x k] and [k x n].
double ProductNs(const Accelerator& accelerator, double m, double n, double k) {
  const double tiles = std::ceil(m / kTile) * std::ceil(n / kTile);
  const double waves = std::ceil(tiles / accelerator.multiprocessors);
  return waves * accelerator.multiprocessors * 2 * kTile * kTile * k / accelerator.matrix_flops * 1e9;
}

double Heads(const BlockWork& work) {
  return work.heads > 0 ? static_cast<double>(work.heads) : std::ceil(static_cast<double>(work.hidden) / 128);
}

// Bytes that a block reads and writes outside the inner loops of its matrix products, if nothing is fused, as
// Megatron-LM ran it. For each token these are three groups of 16-bit numbers. Every rank moves 15 times
// `hidden` (two norms 4, two dropouts with residual 7, inputs and outputs of the split products 4). The
// tensor-parallel ranks share 32 times `hidden` (queries, keys, values and their transposes 16, the inside of
// the feed-forward 16). They also share the attention's scores.
double MovedBytes(const Accelerator& accelerator, const BlockWork& work) {
  const auto t = static_cast<double>(work.tensor_parallel), h = static_cast<double>(work.hidden);
  const auto s = static_cast<double>(work.sequence);
  const double tokens = static_cast<double>(work.sequences) * s;
  return kElementBytes * tokens * (15 * h + 32 * h / t + accelerator.score_passes * Heads(work) * s / t);
}

}  // namespace

const Accelerator* FindAccelerator(std::string_view name) {
  for (const Accelerator& one : kAccelerators)
    if (one.name == name) return &one;
  return nullptr;
}

double ForwardFlops(const BlockWork& work) {
  const auto h = static_cast<double>(work.hidden), s = static_cast<double>(work.sequence);
  const double tokens = static_cast<double>(work.sequences) * s;
  return (24 * tokens * h * h + 4 * tokens * s * h) / static_cast<double>(work.tensor_parallel);
}

double ForwardNs(const Accelerator& accelerator, const BlockWork& work) {
  const auto t = static_cast<double>(work.tensor_parallel), h = static_cast<double>(work.hidden);
  const auto s = static_cast<double>(work.sequence);
  const double tokens = static_cast<double>(work.sequences) * s;
  const double layers =
      ProductNs(accelerator, tokens, 3 * h / t, h) + ProductNs(accelerator, tokens, h, h / t) +
      ProductNs(accelerator, tokens, 4 * h / t, h) + ProductNs(accelerator, tokens, h, 4 * h / t);
  const double scores = 4 * tokens * s * h / t / accelerator.matrix_flops * 1e9;
  return layers + scores + MovedBytes(accelerator, work) / accelerator.memory_gbps;
}

}  // namespace dynamiccl
