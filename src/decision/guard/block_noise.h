// SPDX-License-Identifier: Apache-2.0
// How much the means of blocks of calls vary by themselves: in blocks of 16 calls, 32, and so on to 512,
// since noise with memory averages out more slowly than calls that know nothing of each other. Residuals are
// in logs of time. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dynamiccl {

class BlockNoise {
 public:
  static constexpr size_t kLeastCalls = 16;

  void Take(double residual);
  // Of the residuals: what their reference, a median, leaves of noise that leans to one side.
  double mean() const { return mean_; }
  // References have been learnt anew: the mean is another, the noise about it is not.
  void Recentre() { n_ = 0, mean_ = 0; }
  // Standard deviation of the mean of `calls` calls on end. From the largest blocks that fit in there and of
  // which enough were seen; what is longer than those is taken for independent, but for no more than `spans`
  // stretches of time.
  double DeviationOf(size_t calls, int spans) const;
  // A mean of `calls` calls that was found to be noise: blocks up to that length vary by so much at least.
  void Admit(double deviation, size_t calls);

 private:
  static constexpr size_t kScales = 6;
  struct Scale {
    double sum = 0;  // of the means of the blocks half as long; at the least scale of residuals
    int n = 0;
    int blocks = 0;
    double variance = 0;
    bool Take(double value, int of_block, double usual);
  };

  std::array<Scale, kScales> scales_;
  double mean_ = 0;
  int64_t n_ = 0;
};

}  // namespace dynamiccl
