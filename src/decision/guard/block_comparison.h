// SPDX-License-Identifier: Apache-2.0
// Compares the whole table with NCCL's choice by the time of training steps, for keys whose calls are hidden
// behind computation: their own times say nothing about the job.
//
// Steps come in blocks that use one or the other, in the order table, NCCL, NCCL, table, so that a slow drift
// falls on both alike. How many blocks are needed follows from the noise that they show.
#pragma once

#include <cstdint>
#include <vector>

namespace dynamiccl {

// Returns the number of blocks an arm that show a difference of `effect` in the mean with 80 % power at 5 %
// error, two-sided, where one block's mean varies by `noise` (both as shares of the time). It is the usual
// two-sample formula, 2 (1.96 + 0.84)^2 (noise / effect)^2, for example 63 for 2 % and 1 %; limited to 1000.
int BlocksPerArm(double noise, double effect);

// One such comparison, owned by StepEffects on the leader's control thread. It begins open and ends with one
// verdict, which does not change. Blocks after the verdict are ignored.
class BlockComparison {
 public:
  // The outcome. kNoDifference: the needed blocks were seen and the difference may be chance.
  enum class Verdict : uint8_t { kOpen, kTableIsFaster, kNoDifference, kTableIsSlower };
  // The least difference of interest, as a share of the step time: the 1 % that the guard promises.
  static constexpr double kEffect = 0.01;

  // Adds the mean time of a block's steps in nanoseconds, without its first step. Blocks come in the order of
  // the plan. A mean that is not above 0 is ignored.
  void TakeBlock(bool with_table, double mean_step_ns);
  Verdict verdict() const { return verdict_; }
  // Blocks an arm that are needed by the noise seen so far; 0 before there are enough blocks to know the
  // noise.
  int needed() const { return needed_; }
  // Blocks of both arms so far.
  int blocks() const { return static_cast<int>(table_.size() + nccl_.size()); }
  // Step time with the table over the time without it, less 1, and the standard error of that; 0 while an arm
  // has no block.
  double difference() const;
  double standard_error() const;

 private:
  void Judge();

  // Logs of the blocks' means: a difference of logs is a ratio of times.
  std::vector<double> table_;
  std::vector<double> nccl_;
  int needed_ = 0;
  Verdict verdict_ = Verdict::kOpen;
};

}  // namespace dynamiccl
