// SPDX-License-Identifier: Apache-2.0
// Says how much the means of blocks of consecutive calls vary when nothing has changed. Noise with memory
// averages out more slowly than independent noise, so the deviation of a mean of n calls cannot be computed
// from single calls: it is measured, in blocks of 16, 32, 64 and so on to 512 calls. Residuals are logs of a
// time over its reference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dynamiccl {

// The noise of one quantity of a communicator's calls, owned by a TimingDetector; one thread, constant size.
// It assumes a deviation of 3 % until it has seen enough blocks.
class BlockNoise {
 public:
  // Calls in the smallest block.
  static constexpr size_t kLeastCalls = 16;

  // Adds the residual of one call. Calls come in order.
  void Take(double residual);
  // Mean of the residuals. It is not 0 where noise leans to one side, because the reference is a median.
  double mean() const { return mean_; }
  // Restarts the mean of the residuals; call this when the reference times were learnt anew. The measured
  // variation about the mean stays.
  void Recentre() { n_ = 0, mean_ = 0; }
  // Standard deviation of the mean of `calls` consecutive calls. It is measured on the longest blocks that
  // are not longer than `calls` and of which enough were seen. More calls than such a block has count as
  // several independent blocks, but as at most `spans`.
  double DeviationOf(size_t calls, int spans) const;
  // Tells the object that the mean of `calls` calls was off by `deviation` and that this was noise. From now
  // on it assumes that blocks up to that length vary by at least as much.
  void Admit(double deviation, size_t calls);

 private:
  // Block lengths 16 x 2^i, so 6 of them reach 512 calls.
  static constexpr size_t kScales = 6;
  // Blocks of one length.
  struct Scale {
    // Sum over the incomplete block. Its terms are residuals at the smallest length, and otherwise the means
    // of blocks half as long.
    double sum = 0;
    int n = 0;
    int blocks = 0;
    double variance = 0;
    // Adds one value of a block of `of_block` values; returns true when the block is complete.
    bool Take(double value, int of_block, double usual);
  };

  std::array<Scale, kScales> scales_;
  double mean_ = 0;
  int64_t n_ = 0;
};

}  // namespace dynamiccl
