// SPDX-License-Identifier: Apache-2.0
// Estimates the effect of each config on the time of a whole training step, from steps in which many keys
// used other configs at once.
//
// The model of a step is
//     log(time) = level of its block + sum over keys of effect(key, config that the key used) + noise
// The effect of a key's reference config is 0. Steps come in blocks that have a level of their own, so slow
// drift of the machine is no effect of any config. A block counts by how noisy it was, and steps that lie far
// off the model count less (Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35
// (1964)), so bursts and stalls cannot pass for effects. Which step uses which config is drawn by a hash
// (table_plan.h): then the error of an estimate is known whatever the noise is (Fisher, "The Design of
// Experiments", 1935).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace dynamiccl {

// An effect in logs: -0.05 is a step that takes 5 % less.
struct StepEffect {
  double mean = 0;
  double error = 0;  // standard error
  // Returns the loss to expect from the config, at least 0. It is the mean and half of the error, because a
  // config that few steps have used may cost more than it seems to.
  double likely_loss() const { return std::max(0.0, mean + error / 2); }
};

// One step: the numbers of the configs that its keys used (references left out), and the log of its time.
struct StepRow {
  std::vector<int> configs;
  double log_time = 0;
  // A config was used for the first time, which also sets up its connections: a step that is much
  // slower says nothing.
  bool first_use = false;
};

// The regression of one communicator, owned by its StepExperiment on the leader's control thread. A block
// costs some milliseconds with 100 configs, and less than one with 30.
class StepRegression {
 public:
  static constexpr int kMaxConfigs = 128;
  // Steps of a block at least: with fewer, its level takes away most of what they say.
  static constexpr size_t kLeastBlock = 6;
  // Blocks that are remembered, so effects follow a fabric that changes slowly.
  static constexpr size_t kMaxBlocks = 60;

  // Noise of a step that is assumed before steps say what it is, as for noise().
  static constexpr double kFirstNoise = 0.05;
  explicit StepRegression(double first_noise = kFirstNoise) : usual_noise_(first_noise) {}

  // Adds a config and returns its number; -1 if there is no room.
  int AddConfig();
  // Forgets what was seen of a config, so its number can stand for another one.
  void Forget(int config);
  // Adds a block of consecutive steps. Blocks that are too short are left out.
  void TakeBlock(std::vector<StepRow> block);
  // Effect of one config over another; -1 stands for the reference of the key.
  StepEffect Over(int config, int other) const;
  // Steps that used the config, and blocks in which one did.
  uint32_t steps(int config) const { return counts_[static_cast<size_t>(config)].steps; }
  uint32_t blocks(int config) const { return counts_[static_cast<size_t>(config)].blocks; }
  // Standard deviation of a usual step's log time within its block; 0 before the first block.
  double noise() const { return noise_; }

 private:
  struct Counts {
    uint32_t steps = 0;
    uint32_t blocks = 0;
  };
  // A block with what the last fit made of it.
  struct Block {
    std::vector<StepRow> rows;
    std::vector<double> weights;  // of the rows, at most 1
    std::vector<double> off;      // of the rows from the model
    double noise = 0;
  };
  using Matrix = std::vector<std::vector<double>>;

  void Count(const Block& block, uint32_t sign);
  void Fit();
  // Adds a block to the normal equations.
  void AddTo(Matrix& products, std::vector<double>& with_time, const Block& block) const;
  // Solves them, with a prior, for effects_ and covariance_.
  void Solve(Matrix products, const std::vector<double>& with_time);
  // How far the block's steps lie off the model and off the block's level.
  void Compare(Block& block) const;
  // True if the step used no config that was seen only once or twice.
  bool IsWellKnown(const StepRow& row) const;
  // The usual noise, each block's own, and from both what each step counts. `share`: of degrees of freedom.
  void Weigh();
  void WeighBlock(Block& block, double share) const;

  std::deque<Block> blocks_;
  std::vector<Counts> counts_;
  std::vector<double> effects_;
  Matrix covariance_;
  double noise_ = 0;
  // The same, or what was assumed at first.
  double usual_noise_;
};

}  // namespace dynamiccl
