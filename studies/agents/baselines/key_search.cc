// SPDX-License-Identifier: Apache-2.0
// A sequential test for each candidate. A pair is one call of the configuration in use and one of the
// candidate. After every pair, the mean of winsorised differences of log2 times decides whether the candidate
// is adopted, dropped, or tried again.
#include "studies/agents/baselines/key_search.h"
#include "studies/agents/baselines/probe_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace dynamiccl::agents {
namespace {

// A candidate and its differences of log2 times from the configuration in use.
struct Trial {
  size_t arm = 0;
  // log2 of the predicted time over that of the configuration in use.
  double predicted = 0;
  int count = 0;
  double sum = 0, squares = 0;

  void Add(double difference) {
    const double cut = std::clamp(difference, -kWinsorised, kWinsorised);
    ++count;
    sum += cut;
    squares += cut * cut;
  }
  double mean() const { return sum / count; }
  // The standard error of the mean, with a floor.
  double error() const {
    const double variance = std::max(0.0, squares / count - mean() * mean());
    return std::sqrt(variance / std::max(1, count - 1)) + kLeastError;
  }
  // The best present estimate of the difference.
  double expected() const { return count > 0 ? mean() : std::max(0.0, predicted); }
  // Differences are clamped to log2(1.22), so that one straggling call does not decide.
  static constexpr double kWinsorised = 0.29;
  // The least standard error, in octaves.
  static constexpr double kLeastError = 0.001;
};

// The number of pairs that an adoption needs, and the most pairs that are tried. The bounds are those of jobs
// (src/decision/guard/guarded_key.cc), whose test for adoption is stricter.
constexpr int kLeastPairs = 5;
constexpr int kMaxPairs = 40;
// Number of pairs after which a candidate may be dropped as hopeless, or as futile.
constexpr int kHopelessPairs = 2, kFutilePairs = 8;
// A candidate is dropped if it is 10 % slower, or later if it is not at least 1 % faster. Both are log2.
constexpr double kHopeless = 0.144, kFutile = -0.0144;
// The normal quantile of 0.999: a worse configuration is adopted in one of a thousand cases.
constexpr double kOneSided999 = 3.09;
// A candidate is adopted if it is surely at least 0.5 % faster (log2).
constexpr double kAdopt = -0.0072;
// A single call three times as slow as predicted drops the candidate. Predictions below half of the time of
// the configuration in use are not believed. Both are log2.
constexpr double kNeverAgain = 1.585, kMaxBelieved = -1;
// Maximum number of candidates in the first round.
constexpr size_t kMaxTrials = 8;
// Number of the cost model's best configs that are tried besides the policy's candidates.
constexpr size_t kBestOfModel = 3;
// Number of candidates in each further round.
constexpr size_t kFurtherTrials = 4;
// In each window of this many consecutive calls, trials may cost at most the time of kMaxExcess calls more
// than NCCL's choice.
constexpr std::ptrdiff_t kWindow = 20;
constexpr double kMaxExcess = 0.1 * kWindow;
// Limit on a measured level (log2). A call that took more than eight times as long was a stall, and counts as
// eight times.
constexpr double kMaxCounted = 3;

// Searches the config for one key. A level is the log2 of a time over that of NCCL's choice.
class KeySearch {
 public:
  KeySearch(const Policy* policy, CalledKey& called, size_t first)
      : policy_(policy), called_(called), in_use_(first), choices_{{1, called.Config(first)}} {
    AddFirstTrials();
  }

  std::vector<ChoiceFrom> Run() {
    for (size_t turn = 0; !called_.over();) {
      const double usual = called_.Call(in_use_, false);
      excess_.push_back(std::min(0.0, std::exp2(level_) - 1));
      if (trials_.empty()) AddFurtherTrials();
      if (trials_.empty() || called_.over() || IsTooMuchNow(trials_[turn % trials_.size()])) continue;
      Try(turn % trials_.size(), usual);
      ++turn;
    }
    return choices_;
  }

 private:
  // Adds the candidates that a job would try first. NCCL's own choice is one of them if another config is in
  // use.
  void AddFirstTrials() {
    const SweptKey& key = called_.key();
    for (const ProbeCandidate& candidate : FirstCandidates(policy_, key.model, key.question, kBestOfModel)) {
      const size_t arm = called_.ArmOf(candidate.config);
      const double predicted = std::log2(candidate.predicted);
      if (arm == in_use_) level_ = predicted;
      if (IsOffered(arm) && trials_.size() < kMaxTrials) trials_.push_back({arm, predicted});
    }
    if (in_use_ != 0) trials_.push_back({0, 0});
    for (Trial& trial : trials_) trial.predicted -= level_;
  }

  void AddFurtherTrials() {
    const SweptKey& key = called_.key();
    if (nothing_left_) return;
    std::vector<TriedConfig> tried;
    for (const auto& [arm, level] : levels_) tried.push_back({called_.Config(arm), std::exp2(level)});
    for (const ProbeCandidate& candidate :
         FurtherCandidates(policy_, key.model, key.question, tried, std::exp2(level_),
                           std::numeric_limits<size_t>::max())) {
      const size_t arm = called_.ArmOf(candidate.config);
      if (IsOffered(arm) && trials_.size() < kFurtherTrials)
        trials_.push_back({arm, std::log2(candidate.predicted) - level_});
    }
    nothing_left_ = trials_.empty();
  }

  // True if the arm was measured, is not in use, differs from the default and was not tried.
  bool IsOffered(size_t arm) const {
    return arm < called_.arms() && arm != in_use_ && arm != called_.DefaultsTwin() && !levels_.contains(arm);
  }

  // True if the trial would exceed what trials may cost in a window.
  bool IsTooMuchNow(const Trial& trial) const {
    const double expected = std::exp2(std::min(kMaxCounted, trial.expected() + level_)) - 1;
    const auto calls = std::min<std::ptrdiff_t>(kWindow - 1, std::ssize(excess_));
    double sum = std::max(0.0, expected);
    for (auto of_call = excess_.end() - calls; of_call != excess_.end(); ++of_call) sum += *of_call;
    return sum > kMaxExcess;
  }

  void Try(size_t index, double usual) {
    Trial& trial = trials_[index];
    const double difference = called_.Call(trial.arm, true) - usual;
    excess_.push_back(std::exp2(std::min(kMaxCounted, difference + level_)) - 1);
    trial.Add(difference);
    if (trial.arm == 0)
      level_ = -trial.mean();
    else
      levels_[trial.arm] = level_ + (trial.count > 1 ? trial.mean() : difference);
    if (IsBetter(trial))
      Adopt(trial);
    else if (IsHopeless(trial, difference))
      trials_.erase(trials_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  static bool IsBetter(const Trial& trial) {
    return trial.count >= kLeastPairs && trial.mean() + kOneSided999 * trial.error() < kAdopt;
  }
  static bool IsHopeless(const Trial& trial, double difference) {
    if (difference > std::max(trial.predicted, kMaxBelieved) + kNeverAgain) return true;
    if (trial.count >= kHopelessPairs && trial.mean() > kHopeless) return true;
    return trial.count >= kMaxPairs || (trial.count >= kFutilePairs && trial.mean() > kFutile);
  }

  // The former configuration remains a candidate. The measured differences are relative to the former
  // configuration and say nothing about the new one, so trials start again.
  void Adopt(const Trial& winner) {
    const Trial before{in_use_, -winner.predicted};
    if (in_use_ != 0) levels_[in_use_] = level_;
    level_ = winner.arm == 0 ? 0 : levels_[winner.arm];
    in_use_ = winner.arm;
    std::vector<Trial> others;
    for (const Trial& other : trials_) {
      if (other.arm != in_use_) others.push_back({other.arm, other.predicted + before.predicted});
    }
    others.push_back(before);
    trials_ = std::move(others);
    choices_.push_back({called_.calls() + 1, called_.Config(in_use_)});
  }

  const Policy* policy_;
  CalledKey& called_;
  size_t in_use_;
  // Level of the configuration in use.
  double level_ = 0;
  // Levels of the arms that were tried.
  std::map<size_t, double> levels_;
  std::vector<Trial> trials_;
  bool nothing_left_ = false;
  // Excess of each call over NCCL's choice, in calls. Gains of the configuration in use are subtracted from
  // it.
  std::vector<double> excess_;
  std::vector<ChoiceFrom> choices_;
};

}  // namespace

std::vector<ChoiceFrom> SearchKey(const Policy* policy, CalledKey& called, const CollectiveConfig& first) {
  const size_t arm = called.ArmOf(first);
  return KeySearch(policy, called, first.leaves_nccl_alone() || arm == called.arms() ? 0 : arm).Run();
}

}  // namespace dynamiccl::agents
