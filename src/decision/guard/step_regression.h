// SPDX-License-Identifier: Apache-2.0
// Estimates how each config changes the time of a whole training step, from steps in which many keys used
// other configs at the same time.
//
// The model of a step is
//   log(time) = level of its block + sum over keys of effect(key, config that the key used) + noise
// The effect of a key's reference config is 0. Steps come in blocks, each with its own level, so slow drift
// of the machine is not taken for an effect of a config. A noisier block counts less. A step that lies
// further off the model counts less too (Huber, "Robust estimation of a location parameter", Ann. Math.
// Statist. 35 (1964)), so bursts and stalls do not look like effects. A hash draws which step uses which
// config (table_plan.h). Because this choice is random, the error of an estimate is known whatever the noise
// is (Fisher, "The Design of Experiments", 1935).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace dynamiccl {

// An effect in logs: -0.05 means that a step takes 5 % less time.
struct StepEffect {
  double mean = 0;
  double error = 0;  // standard error
  // Returns the expected loss of the config, at least 0. It is the mean plus half of the error, because a
  // config that few steps have used may cost more than it seems to.
  double likely_loss() const { return std::max(0.0, mean + error / 2); }
};

// One step: the numbers of the configs that its keys used (references left out), and the log of its time.
struct StepRow {
  std::vector<int> configs;
  double log_time = 0;
  // True if the step used a config for the first time, which also sets up connections. Such a step is left
  // out if it is much slower than the others.
  bool first_use = false;
};

// The regression of one communicator, owned by its StepExperiment on the leader's control thread. Adding a
// block takes some milliseconds with 100 configs, and less than one with 30.
class StepRegression {
 public:
  static constexpr int kMaxConfigs = 128;
  // The least steps of a block: with fewer, estimating the block's level uses up most of their information.
  static constexpr size_t kLeastBlock = 6;
  // The most blocks that are remembered. Older blocks are dropped, so effects follow a fabric that changes
  // slowly.
  static constexpr size_t kMaxBlocks = 60;

  // Assumed noise of a step before it can be estimated; standard deviation in logs, as noise() returns it.
  static constexpr double kFirstNoise = 0.05;
  explicit StepRegression(double first_noise = kFirstNoise) : usual_noise_(first_noise) {}

  // Adds a config and returns its number; -1 if there is no room.
  int AddConfig();
  // Forgets the steps that used a config, so its number can stand for another one.
  void Forget(int config);
  // Adds a block of consecutive steps. Blocks that are too short are left out.
  void TakeBlock(std::vector<StepRow> block);
  // Returns the effect of one config over another; -1 stands for the key's reference.
  StepEffect Over(int config, int other) const;
  // Number of steps that used the config, and of blocks with at least one such step.
  uint32_t steps(int config) const { return counts_[static_cast<size_t>(config)].steps; }
  uint32_t blocks(int config) const { return counts_[static_cast<size_t>(config)].blocks; }
  // Standard deviation of a usual step's log time within its block; 0 before the first block.
  double noise() const { return noise_; }

 private:
  struct Counts {
    uint32_t steps = 0;
    uint32_t blocks = 0;
  };
  // A block with the results of the last fit.
  struct Block {
    std::vector<StepRow> rows;
    std::vector<double> weights;  // weights of the rows, at most 1
    std::vector<double> off;      // distance of the rows from the model
    double noise = 0;
  };
  using Matrix = std::vector<std::vector<double>>;

  void Count(const Block& block, uint32_t sign);
  void Fit();
  // Adds a block to the normal equations, which are `products` x effects = `with_time`.
  void AddTo(Matrix& products, std::vector<double>& with_time, const Block& block) const;
  // Solves the normal equations for effects_. `upper` is the Cholesky factor U of the products; only its
  // upper half counts.
  void Solve(const Matrix& upper, std::vector<double> with_time);
  // Sets covariance_ to the inverse of U^T U, where U is `upper`.
  void Invert(const Matrix& upper);
  // Computes how far the block's steps lie off the model, after subtracting the block's level.
  void Compare(Block& block) const;
  // True if the step used no config that was seen only once or twice.
  bool IsWellKnown(const StepRow& row) const;
  // Sets the usual noise, the noise of each block, and the weights of all steps. `share` is the share of the
  // degrees of freedom that is left.
  void Weigh();
  void WeighBlock(Block& block, double share) const;

  std::deque<Block> blocks_;
  std::vector<Counts> counts_;
  std::vector<double> effects_;
  Matrix covariance_;
  double noise_ = 0;
  // Noise of a usual step; before the first estimate it is an assumed value.
  double usual_noise_;
};

}  // namespace dynamiccl
