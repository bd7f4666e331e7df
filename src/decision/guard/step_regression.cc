// SPDX-License-Identifier: Apache-2.0
// Fit solves weighted least squares kRounds times by Cholesky's method. The weights of each solution follow
// from the previous solution. All inner loops run along rows, so that compilers vectorise them.
#include "src/decision/guard/step_regression.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

// The prior for each effect is a normal distribution with mean 0 and this standard deviation, in logs. It
// limits the effect that a config used once gets from a single stalled step.
constexpr double kPriorDeviation = 0.2;
// The least noise of a step, in logs: clocks and schedulers alone cause as much.
constexpr double kLeastNoise = 0.002;
// A step that lies further off the model than this many standard deviations counts less: the further off, the
// less.
constexpr double kStallDeviations = 2;
// A config that was used in fewer steps than this is not well known (IsWellKnown): its estimate mostly shows
// the noise of these steps.
constexpr uint32_t kKnownSteps = 3;
// The noise is estimated from at least kLeastOfNoise steps, and the noise of a block from at least
// kLeastOfBlock of its steps. At least kLeastShare of the degrees of freedom must be left after fitting the
// effects and levels.
constexpr size_t kLeastOfNoise = 12;
constexpr double kLeastOfBlock = 4;
constexpr double kLeastShare = 0.3;
// If the first step that uses a config took this much longer than the median step, in logs, the cause is
// taken to be setting up connections, and the step is left out.
constexpr double kMaxOfFirstUse = 0.1;
// Number of solutions for each block. After this many, the weights of steps whose configs were used three
// times no longer change.
constexpr int kRounds = 4;

bool Uses(const StepRow& row, int config) {
  return std::find(row.configs.begin(), row.configs.end(), config) != row.configs.end();
}

// Drops steps that set up connections and are much slower than the block's median: they do not show whether
// their configs are slow.
void DropSlowFirstUses(std::vector<StepRow>& rows) {
  std::vector<double> times;
  for (const StepRow& row : rows) times.push_back(row.log_time);
  const double most = Median(times) + kMaxOfFirstUse;
  std::erase_if(rows, [most](const StepRow& row) { return row.first_use && row.log_time > most; });
}

// Subtracts `factor` times `from` from `row`; both have `count` numbers and do not overlap.
void Subtract(double* __restrict row, double factor, const double* __restrict from, size_t count) {
  for (size_t i = 0; i < count; ++i) row[i] -= factor * from[i];
}

// Cholesky factorisation. `upper` holds the upper half of the products P; it is replaced by U, where U^T U is
// P plus the prior.
void Factor(std::vector<std::vector<double>>& upper) {
  const size_t n = upper.size();
  for (size_t i = 0; i < n; ++i) upper[i][i] += 1 / (kPriorDeviation * kPriorDeviation);
  for (size_t k = 0; k < n; ++k) {
    std::vector<double>& row = upper[k];
    row[k] = std::sqrt(std::max(row[k], 1e-12));
    for (size_t i = k + 1; i < n; ++i) row[i] /= row[k];
    for (size_t j = k + 1; j < n; ++j) Subtract(&upper[j][j], row[j], &row[j], n - j);
  }
}

}  // namespace

int StepRegression::AddConfig() {
  if (counts_.size() == kMaxConfigs) return -1;
  counts_.emplace_back();
  effects_.push_back(0);
  for (auto& row : covariance_) row.push_back(0);
  covariance_.emplace_back(counts_.size(), 0.0);
  covariance_.back().back() = kPriorDeviation * kPriorDeviation;
  return static_cast<int>(counts_.size()) - 1;
}

void StepRegression::Forget(int config) {
  for (Block& block : blocks_) {
    Count(block, -1u);
    std::erase_if(block.rows, [config](const StepRow& row) { return Uses(row, config); });
    block.weights.assign(block.rows.size(), 1);
    Count(block, 1);
  }
  std::erase_if(blocks_, [](const Block& block) { return block.rows.size() < kLeastBlock; });
  counts_[static_cast<size_t>(config)] = {};
  Fit();
}

void StepRegression::Count(const Block& block, uint32_t sign) {
  for (size_t config = 0; config < counts_.size(); ++config) {
    const auto uses = [config](const StepRow& row) { return Uses(row, static_cast<int>(config)); };
    const auto steps = static_cast<uint32_t>(std::count_if(block.rows.begin(), block.rows.end(), uses));
    counts_[config].steps += sign * steps;
    counts_[config].blocks += steps > 0 ? sign : 0;
  }
}

void StepRegression::TakeBlock(std::vector<StepRow> block) {
  if (block.empty()) return;
  DropSlowFirstUses(block);
  if (block.size() < kLeastBlock) return;
  const std::vector<double> weights(block.size(), 1);
  blocks_.push_back({std::move(block), weights, {}, usual_noise_});
  Count(blocks_.back(), 1);
  if (blocks_.size() > kMaxBlocks) {
    Count(blocks_.front(), -1u);
    blocks_.pop_front();
  }
  Fit();
}

void StepRegression::Fit() {
  const size_t configs = counts_.size();
  for (int round = 0; round < kRounds; ++round) {
    Matrix products(configs, std::vector<double>(configs, 0.0));
    std::vector<double> with_time(configs, 0.0);
    for (const Block& block : blocks_) AddTo(products, with_time, block);
    Factor(products);
    Solve(products, std::move(with_time));
    // Only the last solution needs the standard errors.
    if (round == kRounds - 1) Invert(products);
    for (Block& block : blocks_) Compare(block);
    Weigh();
  }
}

// Rows are sparse. So the block's level is subtracted from the sums of products and not from each row:
//   sum of w x x' - (sum of w x)(sum of w x)' / sum of w.
void StepRegression::AddTo(Matrix& products, std::vector<double>& with_time, const Block& block) const {
  const double scale = 1 / (block.noise * block.noise);
  std::vector<double> uses(counts_.size(), 0.0);
  double weights = 0, level = 0;
  for (size_t row = 0; row < block.rows.size(); ++row) {
    const double weight = scale * block.weights[row];
    weights += weight;
    level += weight * block.rows[row].log_time;
    for (const int i : block.rows[row].configs) {
      uses[static_cast<size_t>(i)] += weight;
      with_time[static_cast<size_t>(i)] += weight * block.rows[row].log_time;
      for (const int j : block.rows[row].configs)
        products[static_cast<size_t>(i)][static_cast<size_t>(j)] += weight;
    }
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] == 0) continue;
    with_time[i] -= uses[i] * level / weights;
    for (size_t j = 0; j < uses.size(); ++j) products[i][j] -= uses[i] * uses[j] / weights;
  }
}

void StepRegression::Solve(const Matrix& upper, std::vector<double> with_time) {
  const size_t n = upper.size();
  for (size_t k = 0; k < n; ++k) {
    with_time[k] /= upper[k][k];
    Subtract(&with_time[k] + 1, with_time[k], &upper[k][k] + 1, n - k - 1);
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) with_time[i] -= upper[i][k] * with_time[k];
    with_time[i] /= upper[i][i];
  }
  effects_ = std::move(with_time);
}

// The inverse is symmetric, so only its lower half is computed: U^T Z = 1, then U C = Z, in place.
void StepRegression::Invert(const Matrix& upper) {
  const size_t n = upper.size();
  covariance_.assign(n, std::vector<double>(n, 0.0));
  for (size_t k = 0; k < n; ++k) {
    std::vector<double>& row = covariance_[k];
    row[k] = 1;
    for (size_t j = 0; j <= k; ++j) row[j] /= upper[k][k];
    for (size_t i = k + 1; i < n; ++i) Subtract(covariance_[i].data(), upper[k][i], row.data(), k + 1);
  }
  for (size_t i = n; i-- > 0;) {
    std::vector<double>& row = covariance_[i];
    for (size_t k = i + 1; k < n; ++k) Subtract(row.data(), upper[i][k], covariance_[k].data(), i + 1);
    for (size_t j = 0; j <= i; ++j) {
      row[j] /= upper[i][i];
      covariance_[j][i] = row[j];
    }
  }
}

// The median step is the level here, because a mean would follow a stall.
void StepRegression::Compare(Block& block) const {
  block.off.clear();
  for (const StepRow& row : block.rows) {
    double fitted = 0;
    for (const int config : row.configs) fitted += effects_[static_cast<size_t>(config)];
    block.off.push_back(row.log_time - fitted);
  }
  const double level = Median(block.off);
  for (double& off : block.off) off -= level;
}

bool StepRegression::IsWellKnown(const StepRow& row) const {
  return std::all_of(row.configs.begin(), row.configs.end(),
                     [this](int config) { return steps(config) >= kKnownSteps; });
}

// The usual noise follows from the median distance from the model, corrected for the degrees of freedom that
// configs and levels take. Steps with configs that were used only once or twice are left out, because the fit
// follows them.
void StepRegression::Weigh() {
  std::vector<double> distances;
  auto taken = static_cast<double>(blocks_.size());
  for (size_t i = 0; i < counts_.size(); ++i) taken += counts_[i].steps >= kKnownSteps ? 1 : 0;
  for (const Block& block : blocks_) {
    for (size_t row = 0; row < block.rows.size(); ++row) {
      if (IsWellKnown(block.rows[row])) distances.push_back(std::abs(block.off[row]));
    }
  }
  noise_ = usual_noise_;
  double share = distances.empty() ? 0 : 1 - taken / static_cast<double>(distances.size());
  // With hardly more steps than configs, the fit follows the noise itself, and the distances from the model
  // say nothing about the noise.
  const bool says_noise = distances.size() >= kLeastOfNoise && share >= kLeastShare;
  share = std::max(share, kLeastShare);
  if (says_noise)
    noise_ = std::max(kLeastNoise, kSigmasOfMedianDeviation * Median(distances) / std::sqrt(share));
  usual_noise_ = noise_;
  for (Block& block : blocks_) WeighBlock(block, share);
}

// If the steps of a block lie further off the model than usual on the whole, the block gets its own, larger
// noise.
void StepRegression::WeighBlock(Block& block, double share) const {
  const double most = kStallDeviations * std::max(noise_, block.noise);
  double squares = 0, count = 0;
  for (size_t row = 0; row < block.rows.size(); ++row) {
    if (!IsWellKnown(block.rows[row])) continue;
    squares += std::pow(std::min(std::abs(block.off[row]), most), 2);
    ++count;
  }
  block.noise = count < kLeastOfBlock ? noise_ : std::max(noise_, std::sqrt(squares / count / share));
  for (size_t row = 0; row < block.rows.size(); ++row) {
    const double off = std::max(std::abs(block.off[row]), 1e-9);
    block.weights[row] = std::min(1.0, kStallDeviations * block.noise / off);
  }
}

StepEffect StepRegression::Over(int config, int other) const {
  const auto effect = [this](int i) { return i < 0 ? 0.0 : effects_[static_cast<size_t>(i)]; };
  const auto covariance = [this](int i, int j) {
    return i < 0 || j < 0 ? 0.0 : covariance_[static_cast<size_t>(i)][static_cast<size_t>(j)];
  };
  const double variance =
      covariance(config, config) + covariance(other, other) - 2 * covariance(config, other);
  return {effect(config) - effect(other), std::sqrt(std::max(variance, 0.0))};
}

}  // namespace dynamiccl
