// SPDX-License-Identifier: Apache-2.0
// How much the means of blocks of calls vary by themselves: in blocks of 16 calls, 32, and so on to 512, since
// noise with memory averages out more slowly than calls that know nothing of each other. Residuals are in logs
// of time. One thread.
#pragma once

#include <array>
#include <cstddef>

namespace dynamiccl {

class BlockNoise {
 public:
  static constexpr size_t kLeastCalls = 16;

  void Take(double residual);
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
    bool Take(double value, int of_block);
  };

  std::array<Scale, kScales> scales_;
};

}  // namespace dynamiccl
