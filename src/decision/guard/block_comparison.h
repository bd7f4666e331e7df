// SPDX-License-Identifier: Apache-2.0
// Compares the whole table with NCCL's choice by the time of training steps, for keys whose calls are hidden
// behind computation: their own times say nothing. Steps come in blocks that use one or the other (table,
// NCCL, NCCL, table: a slow drift falls on both alike); how many blocks are needed follows from the noise
// that they show. Leader only.
#pragma once

#include <cstdint>
#include <vector>

namespace dynamiccl {

// Blocks an arm that show a difference of `effect` in the mean with 80 % power at 5 % error, two-sided, where
// one block's mean varies by `noise` (both as shares of the time): 2 (1.96 + 0.84)^2 (noise / effect)^2, the
// usual two-sample formula; 63 for 2 % and 1 %.
int BlocksPerArm(double noise, double effect);

class BlockComparison {
 public:
  enum class Verdict : uint8_t { kOpen, kTableIsFaster, kNoDifference, kTableIsSlower };
  // The least difference of interest: the promise's 1 %.
  static constexpr double kEffect = 0.01;

  // Mean step time of a block, the first step left out. Blocks come in the order of the plan.
  void TakeBlock(bool with_table, double mean_step_ns);
  Verdict verdict() const { return verdict_; }
  // Blocks an arm that are needed, by the noise so far; 0: too few seen to say.
  int needed() const { return needed_; }
  int blocks() const { return static_cast<int>(table_.size() + nccl_.size()); }
  // Time with the table over time without, less 1, and its standard error.
  double difference() const;
  double standard_error() const;

 private:
  void Judge();

  // Logs of the blocks' means.
  std::vector<double> table_;
  std::vector<double> nccl_;
  int needed_ = 0;
  Verdict verdict_ = Verdict::kOpen;
};

}  // namespace dynamiccl
