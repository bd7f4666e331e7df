// SPDX-License-Identifier: Apache-2.0
// Residuals are averaged in blocks of 16 calls, and the means of two neighbouring blocks in a block of twice
// the length, up to 512 calls. For each length, the variance of the block means around the mean of all
// residuals is a moving average.
#include "src/decision/guard/block_noise.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

// The assumed standard deviation of a block's mean before any block was seen: 3 % (in logs). The assumption
// counts as much as 4 measured blocks.
constexpr double kFirstDeviation = 0.03;
constexpr int kFirstBlocks = 4;
// Least weight of a new block in the moving average of the variance, so the average covers about the last 32
// blocks.
constexpr double kLeastRate = 1.0 / 32;
// Least weight of a new call in the moving average of all residuals, so that this average covers about the
// last 4096 calls. The longest blocks have 512 calls; a faster average would follow them and hide their
// variation.
constexpr double kLeastMeanRate = 1.0 / 4096;
// The variance of a block length is used only after this many blocks of that length.
constexpr int kEnoughBlocks = 8;

}  // namespace

// Adds a value to the block under way. Once the block is complete, `sum` holds the block's mean until the
// next call of Take.
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
