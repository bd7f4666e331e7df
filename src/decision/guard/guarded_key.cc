// SPDX-License-Identifier: Apache-2.0
// How one key's samples are judged. Ratios are logs of a trial's time over the choice's, so below 0 is
// faster.
//   1. Take sorts a call: a trial goes to TakeTrial; a call of the choice or of NCCL's goes to the account
//      and to the pairs.
//   2. TakePair adds the pair's ratio to the trial's test and ends the trial as better or futile.
//   3. EndHopeless ends trials that another one has left behind.
//   4. MustRevoke and InDoubt judge the choice itself by pairs with samples of NCCL's choice.
// Ending a trial early needs no test: the probability of a wrong adoption does not grow by adopting less.
#include "src/decision/guard/guarded_key.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace dynamiccl {
namespace {

// Pairs that a winner must have: fewer come from one moment, in which the fabric may have favoured it.
constexpr uint32_t kLeastPairs = 5;
// A trial is futile when this many pairs have a mean log ratio above the value beside it: 2 pairs 10 %
// slower, 3 pairs 2 % slower, 8 pairs less than 1 % faster. The fewer pairs, the clearer they must speak.
constexpr uint32_t kClearlyFutilePairs = 3;
constexpr double kClearlyFutile = 0.02;
constexpr uint32_t kHopelessPairs = 2;
constexpr double kHopeless = 0.1;
constexpr uint32_t kFutilePairs = 8;
constexpr double kFutile = -0.01;
// A choice is in doubt when 12 pairs or more say that it loses 3 %, in at most 16 versions for each choice:
// doubt that does not end must not go on producing versions (docs/guard.md).
constexpr uint32_t kDoubtPairs = 12;
constexpr double kDoubtedLoss = 0.03;
constexpr int kMaxDoubts = 16;
// A choice that nobody measured is revoked when 16 pairs say that it loses 1 %, or 6 that it loses 10 %
// (docs/guard.md). A choice that saves 5 % at 5 % noise is lost once in 1,000 by that, and can still be found
// by trials.
constexpr uint32_t kUnprovenPairs = 16;
constexpr double kUnprovenLoss = 0.01;
constexpr uint32_t kUnprovenBadPairs = 6;
constexpr double kUnprovenBad = 0.1;
// Limit of a log ratio in Trial::ratio_sum: a factor of e either way.
constexpr double kFarOut = 1;
// Share of a call that a trial without pairs is taken to lose at least, as if one pair had shown it: few of
// the predictions that promise a gain are right.
constexpr double kFirstTrialLoss = 0.3;
// Share of a call that a trial costs at least: noise alone costs as much.
constexpr double kLeastTrialLoss = 0.02;
// Share of the choice's time that trials may win at least, so that no key's part of the budget is 0.
constexpr double kLeastMayGain = 0.05;
// From 4 pairs on, a trial that is behind the best one by kBehind over the root of its pairs, in logs, will
// not be the best. At 5 % noise a call, a pair varies by 7 %, so this is two deviations of the difference of
// two means.
constexpr uint32_t kBehindPairs = 4;
constexpr double kBehind = 0.2;

// True where the pairs say that more calls of the trial are not worth it, and at the last round that a
// version makes.
bool IsFutile(const Trial& trial) {
  const uint32_t count = trial.better.count();
  const auto above = [&](uint32_t pairs, double mean) { return count >= pairs && trial.near_mean() > mean; };
  return above(kHopelessPairs, kHopeless) || above(kClearlyFutilePairs, kClearlyFutile) ||
         above(kFutilePairs, kFutile) || count >= kMaxRounds - 1;
}

}  // namespace

// The prediction is the test's first guess of the mean. Its limit of 0.1 keeps the log finite.
Trial::Trial(const ProbeCandidate& tried)
    : candidate(tried), better(-kLeastGain, kWinsorisedTrial, std::log(std::max(tried.predicted, 0.1))) {}

void GuardedKey::Use(const CollectiveConfig& choice, const std::vector<CollectiveConfig>& trials) {
  // The first calls of any new version are dense in samples, so it ends this doubt.
  doubts_ += InDoubt() ? 1 : 0;
  calls_of_version_ = 0;
  if (choice != choice_) {
    choice_ = choice;
    account_.Restart();
    RestartComparison();
    trials_.clear();
    resting_.clear();
    calls_of_choice_ = 0;
    proven_ = false;
  }
  std::move(trials_.begin(), trials_.end(), std::back_inserter(resting_));
  trials_.clear();
  for (const CollectiveConfig& config : trials) TakeUpTrial(config);
}

void GuardedKey::TakeUpTrial(const CollectiveConfig& config) {
  const auto rested = std::find_if(resting_.begin(), resting_.end(),
                                   [&](const Trial& trial) { return trial.candidate.config == config; });
  if (rested == resting_.end()) {
    trials_.emplace_back(ProbeCandidate{config, PredictedFor(config)});
    return;
  }
  trials_.push_back(std::move(*rested));
  resting_.erase(rested);
}

double GuardedKey::PredictedFor(const CollectiveConfig& config) const {
  const auto known = std::find_if(candidates_.begin(), candidates_.end(),
                                  [&](const auto& candidate) { return candidate.config == config; });
  return known != candidates_.end() ? known->predicted : 1;
}

void GuardedKey::Take(const GuardedCall& call) {
  ++calls_;
  ++calls_of_version_;
  ++calls_of_choice_;
  captured_ |= call.captured;
  const bool is_timed = call.transfer_ns > 0 && !call.captured;
  const double ns = is_timed ? static_cast<double>(call.compared_ns()) : -1;
  timed_ += is_timed ? 1 : 0;
  if (call.use == CallUse::kTrial) {
    if (is_timed) TakeTrial(call.config, ns);
    return;
  }
  // A call that an older version decided.
  if (call.config != choice_ && !call.config.leaves_nccl_alone()) return;
  const bool is_default = call.config.leaves_nccl_alone();
  if (call.on_suspicion && is_timed) {
    is_default ? account_.TakeDefault(-1) : account_.TakeChoiceOnSuspicion(ns);
    return;
  }
  is_default ? account_.TakeDefault(ns) : account_.TakeChoice(ns);
  if (!is_timed) return;
  TakeCompared(call, std::log(ns));
}

// A call of the choice completes pairs with trials; a sample of NCCL's choice pairs with calls of the choice.
void GuardedKey::TakeCompared(const GuardedCall& call, double log_time) {
  const bool is_default = call.config.leaves_nccl_alone();
  if (call.config == choice_) {
    for (Trial& trial : trials_) {
      if (const auto ratio = trial.pairs.TakeCommon(log_time)) TakePair(trial, *ratio);
    }
    EndHopeless();
  }
  if (choice_.leaves_nccl_alone()) return;
  const auto ratio = is_default ? pairs_.TakeRare(log_time) : pairs_.TakeCommon(log_time);
  if (ratio) slower_.Add(*ratio);
}

const TimeLevel& GuardedKey::ChoiceLevel() const {
  return choice_.leaves_nccl_alone() ? account_.default_level() : account_.choice_level();
}

double GuardedKey::ExcessOf(const GuardedCall& call) const {
  const bool other = call.config != choice_ && call.use != CallUse::kChoice;
  if (!other || call.transfer_ns <= 0 || call.captured || ChoiceLevel().count() == 0) return 0;
  return static_cast<double>(call.compared_ns()) - ChoiceLevel().mean();
}

void GuardedKey::TakeTrial(const CollectiveConfig& config, double ns) {
  const TimeLevel& choice = ChoiceLevel();
  if (choice.count() > 0) trial_cost_ns_ += std::min(ns, MostOf(config)) - choice.mean();
  for (Trial& trial : trials_) {
    if (trial.candidate.config != config) continue;
    if (IsTooSlow(trial, ns)) {
      trial.state = Trial::State::kBarred;
      return Bar(config);
    }
    if (!IsHarmless(config) && !IsBarred(config)) harmless_.push_back(config);
    // The first call of a config also sets up its connections.
    if (++trial.timed == 1) return;
    if (const auto ratio = trial.pairs.TakeRare(std::log(ns))) TakePair(trial, *ratio);
    // Some calls of a version's rounds make no pair, so a trial may have had all its calls with few pairs.
    if (trial.state == Trial::State::kOpen && trial.timed > kMaxRounds) trial.state = Trial::State::kFutile;
  }
  EndHopeless();
}

// The others come sooner when a trial ends.
void GuardedKey::EndHopeless() {
  const auto behind = [](const Trial& trial, const Trial& best) {
    const uint32_t pairs = std::min(trial.better.count(), best.better.count());
    return pairs >= kBehindPairs && trial.mean() - best.mean() > kBehind / std::sqrt(pairs);
  };
  for (const Trial& best : trials_) {
    if (!best.goes_on()) continue;
    for (Trial& trial : trials_) {
      if (trial.goes_on() && behind(trial, best)) trial.state = Trial::State::kFutile;
    }
  }
}

// After some pairs in its favour one slow call is the fabric's fault, not the config's. A prediction of less
// than half of NCCL's time is believed as a half only: one far too good would bar its own config.
bool GuardedKey::IsTooSlow(const Trial& trial, double ns) const {
  const TimeLevel& nccl = account_.default_level();
  if (trial.better.count() >= kClearlyFutilePairs && trial.near_mean() < 0) return false;
  return nccl.count() > 0 && ns > kBarredTimes * std::max(trial.candidate.predicted, 0.5) * nccl.mean();
}

void GuardedKey::TakePair(Trial& trial, double ratio) {
  trial.better.Add(ratio);
  trial.ratio_sum += std::clamp(ratio, -kFarOut, kFarOut);
  trial.near_sum += std::clamp(ratio, -kWinsorisedRatio, kWinsorisedRatio);
  if (trial.state != Trial::State::kOpen) return;
  if (trial.better.count() >= kLeastPairs && trial.better.Below(kWrongAdoption)) {
    trial.state = Trial::State::kBetter;
  } else if (IsFutile(trial)) {
    trial.state = Trial::State::kFutile;
  }
}

void GuardedKey::RestartComparison() {
  pairs_ = PairedTimes();
  slower_ = BettingTest(-kLeastGain, kWinsorisedRatio);
  doubts_ = 0;
}

void GuardedKey::Restart() {
  if (!choice_.leaves_nccl_alone() && !account_.IsGross() && !IsHarmless(choice_))
    harmless_.push_back(choice_);
  account_.Restart();
  RestartComparison();
  trials_.clear();
  resting_.clear();
  barred_.clear();
  timed_ = 0;
}

bool GuardedKey::MustRevoke() const {
  if (choice_.leaves_nccl_alone()) return false;
  const auto loses = [this](uint32_t pairs, double loss) {
    return slower_.count() >= pairs && slower_.mean() < -loss;
  };
  const bool in_vain =
      !proven_ && (loses(kUnprovenPairs, kUnprovenLoss) || loses(kUnprovenBadPairs, kUnprovenBad));
  return in_vain || account_.Overspent() || slower_.Below(kWrongRevocation);
}

bool GuardedKey::InDoubt() const {
  if (choice_.leaves_nccl_alone() || captured_ || in_blocks_) return false;
  if (calls_of_version_ < kMiddleCalls || doubts_ == kMaxDoubts) return false;
  return slower_.count() >= kDoubtPairs && slower_.mean() < -kDoubtedLoss;
}

bool GuardedKey::IsBarred(const CollectiveConfig& config) const {
  return std::find(barred_.begin(), barred_.end(), config) != barred_.end();
}

bool GuardedKey::IsHarmless(const CollectiveConfig& config) const {
  return std::find(harmless_.begin(), harmless_.end(), config) != harmless_.end();
}

void GuardedKey::Bar(const CollectiveConfig& config) {
  if (!IsBarred(config)) barred_.push_back(config);
  std::erase(harmless_, config);
}

std::vector<CollectiveConfig> GuardedKey::OpenTrials() const {
  if (!searching()) return TrialsBeside(choice_);
  std::vector<CollectiveConfig> open;
  for (const Trial& trial : trials_) {
    if (trial.goes_on()) open.push_back(trial.candidate.config);
  }
  return open;
}

std::vector<CollectiveConfig> GuardedKey::TrialsBeside(const CollectiveConfig& choice) const {
  std::vector<CollectiveConfig> trials;
  for (const ProbeCandidate& candidate : candidates_) {
    if (trials.size() == kMaxTrials) break;
    const Trial* made = choice == choice_ ? TrialOf(candidate.config) : nullptr;
    if (made != nullptr && !made->goes_on()) continue;
    if (!IsBarred(candidate.config) && candidate.config != choice) trials.push_back(candidate.config);
  }
  std::stable_partition(trials.begin(), trials.end(),
                        [this](const CollectiveConfig& config) { return IsHarmless(config); });
  return trials;
}

uint8_t GuardedKey::KnownOf(const std::vector<CollectiveConfig>& trials) const {
  const auto unknown = std::find_if(trials.begin(), trials.end(),
                                    [this](const CollectiveConfig& config) { return !IsHarmless(config); });
  return static_cast<uint8_t>(unknown - trials.begin());
}

bool GuardedKey::MustStopTrial() const {
  return std::any_of(trials_.begin(), trials_.end(),
                     [](const Trial& trial) { return trial.state == Trial::State::kBarred; });
}

const Trial* GuardedKey::Winner() const {
  const Trial* best = nullptr;
  for (const Trial& trial : trials_) {
    if (!trial.goes_on() || trial.better.count() < kLeastPairs) continue;
    if (best == nullptr || trial.mean() < best->mean()) best = &trial;
  }
  return best != nullptr && best->state == Trial::State::kBetter ? best : nullptr;
}

bool GuardedKey::search_ended() const {
  return std::none_of(trials_.begin(), trials_.end(),
                      [](const Trial& trial) { return trial.state == Trial::State::kOpen; });
}

const Trial* GuardedKey::TrialOf(const CollectiveConfig& config) const {
  for (const auto* trials : {&trials_, &resting_}) {
    for (const Trial& trial : *trials) {
      if (trial.candidate.config == config) return &trial;
    }
  }
  return nullptr;
}

bool GuardedKey::AllMade(const std::vector<CollectiveConfig>& trials) const {
  return std::all_of(trials.begin(), trials.end(), [this](const CollectiveConfig& config) {
    const Trial* trial = TrialOf(config);
    return trial != nullptr && (trial->timed > 0 || trial->state == Trial::State::kBarred);
  });
}

// Predictions are times over NCCL's, and the choice may be faster than NCCL's.
double GuardedKey::RatioOf(const CollectiveConfig& config) const {
  const Trial* trial = TrialOf(config);
  if (trial == nullptr || trial->better.count() == 0)
    return PredictedFor(config) * account_.default_ns() / std::max(ChoiceNs(), 1.0);
  const double first = std::log1p(kFirstTrialLoss);
  return std::exp((first + trial->ratio_sum) / (1 + trial->better.count()));
}

// Once a pair shows what is usual, a stall of the machine is no cost of the trial.
double GuardedKey::MostOf(const CollectiveConfig& config) const {
  const Trial* trial = TrialOf(config);
  const bool known = trial != nullptr && trial->better.count() > 0;
  return known ? kWinsoriseTimes * RatioOf(config) * ChoiceNs() : std::numeric_limits<double>::infinity();
}

double GuardedKey::ChoiceNs() const {
  return ChoiceLevel().count() > 0 ? ChoiceLevel().mean() : account_.default_ns();
}

double GuardedKey::TrialCostNs(const std::vector<CollectiveConfig>& trials) const {
  double lost = 0;
  for (const CollectiveConfig& config : trials) {
    const Trial* trial = TrialOf(config);
    const bool shown = trial != nullptr && trial->better.count() > 0;
    lost += std::max(RatioOf(config) - 1, shown ? -kFirstTrialLoss : kFirstTrialLoss);
  }
  const auto count = static_cast<double>(std::max<size_t>(trials.size(), 1));
  return std::max(kLeastTrialLoss, lost / count) * ChoiceNs();
}

double GuardedKey::MayGain(const std::vector<CollectiveConfig>& trials) const {
  double gain = kLeastMayGain;
  for (const CollectiveConfig& config : trials) gain = std::max(gain, 1 - RatioOf(config));
  return gain;
}

std::optional<double> GuardedKey::Ratio() const {
  if (choice_.leaves_nccl_alone() || slower_.count() == 0) return std::nullopt;
  return std::exp(-slower_.mean());
}

double GuardedKey::TakeTrialCost() {
  return std::exchange(trial_cost_ns_, 0.0);
}

}  // namespace dynamiccl
