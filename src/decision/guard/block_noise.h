// SPDX-License-Identifier: Apache-2.0
// How much the means of blocks of consecutive calls vary by themselves. Noise with memory averages out more
// slowly than independent noise, so the deviation of a mean of n calls cannot be computed from single calls:
// it is measured, in blocks of 16, 32, 64 and so on to 512 calls. Residuals are logs of a time over its
// reference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dynamiccl {

// The noise of one quantity of a communicator's calls, owned by a TimingDetector; one thread, constant size.
// It assumes 3 % until enough blocks were seen.
class BlockNoise {
 public:
  // Calls in the smallest block.
  static constexpr size_t kLeastCalls = 16;

  // Adds the residual of one call. Calls come in order.
  void Take(double residual);
  // Mean of the residuals. It is not 0 where noise leans to one side, because the reference is a median.
  double mean() const { return mean_; }
  // Begins a new mean because references were learnt anew. The variation about the mean stays.
  void Recentre() { n_ = 0, mean_ = 0; }
  // Standard deviation of the mean of `calls` consecutive calls. It comes from the largest blocks that fit
  // into them and of which enough were seen. Longer stretches count as several independent blocks, but as no
  // more than `spans`.
  double DeviationOf(size_t calls, int spans) const;
  // Declares that a mean of `calls` calls lay off by `deviation` and was found to be noise: blocks up to that
  // length vary by at least as much from now on.
  void Admit(double deviation, size_t calls);

 private:
  // Block lengths 16 x 2^i, so 6 of them reach 512 calls.
  static constexpr size_t kScales = 6;
  // Blocks of one length.
  struct Scale {
    // Sum of the means of the blocks half as long; at the smallest length, of residuals.
    double sum = 0;
    int n = 0;
    int blocks = 0;
    double variance = 0;
    // Adds one of `of_block` values; true when a block is complete.
    bool Take(double value, int of_block, double usual);
  };

  std::array<Scale, kScales> scales_;
  double mean_ = 0;
  int64_t n_ = 0;
};

}  // namespace dynamiccl
