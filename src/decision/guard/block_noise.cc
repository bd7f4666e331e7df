// SPDX-License-Identifier: Apache-2.0
// A cascade of block lengths: the mean of a complete block is a value of the next length. The variance of
// each length is an average that forgets, around the mean of all residuals.
#include "src/decision/guard/block_noise.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

// The assumed deviation of a block's mean before any block was seen: 3 % (in logs), with the weight of 4
// blocks.
constexpr double kFirstDeviation = 0.03;
constexpr int kFirstBlocks = 4;
// The variance forgets over 32 blocks.
constexpr double kLeastRate = 1.0 / 32;
// The mean forgets over 4096 calls: more slowly than the longest blocks, or it would follow them.
constexpr double kLeastMeanRate = 1.0 / 4096;
// Blocks of a length that must have been seen before their variance is used.
constexpr int kEnoughBlocks = 8;

}  // namespace

// After a complete block, `sum` holds its mean until the next call of Take.
bool BlockNoise::Scale::Take(double value, int of_block, double usual) {
  if (n == of_block) sum = n = 0;
  sum += value;
  if (++n < of_block) return false;
  sum /= n;
  if (variance == 0) variance = kFirstDeviation * kFirstDeviation;
  ++blocks;
  variance +=
      std::max(kLeastRate, 1.0 / (kFirstBlocks + blocks)) * ((sum - usual) * (sum - usual) - variance);
  return true;
}

void BlockNoise::Take(double residual) {
  mean_ += std::max(kLeastMeanRate, 1.0 / static_cast<double>(++n_)) * (residual - mean_);
  double mean = residual;
  int of_block = kLeastCalls;
  for (Scale& scale : scales_) {
    if (!scale.Take(mean, of_block, mean_)) return;
    mean = scale.sum;
    of_block = 2;
  }
}

double BlockNoise::DeviationOf(size_t calls, int spans) const {
  const Scale* measured = scales_.data();
  size_t length = kLeastCalls;
  for (const Scale& scale : scales_) {
    const size_t next = kLeastCalls << (&scale - scales_.data());
    if (next > calls || scale.blocks < kEnoughBlocks) break;
    measured = &scale;
    length = next;
  }
  const double deviation = measured->variance == 0 ? kFirstDeviation : std::sqrt(measured->variance);
  const double independent =
      std::min<double>(spans, static_cast<double>(calls) / static_cast<double>(length));
  return deviation / std::sqrt(std::max(1.0, independent));
}

void BlockNoise::Admit(double deviation, size_t calls) {
  for (size_t i = 0; i < kScales && kLeastCalls << i <= std::max(calls, kLeastCalls); ++i) {
    scales_[i].variance = std::max(scales_[i].variance, deviation * deviation);
  }
}

}  // namespace dynamiccl
