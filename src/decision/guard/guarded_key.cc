// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/guarded_key.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dynamiccl {
namespace {

// A winner has been paired so often: fewer pairs come from one moment.
constexpr uint32_t kLeastPairs = 5;
// A trial that so many pairs show to be no gain is not worth more; ending one early costs no error of
// adoption.
constexpr uint32_t kClearlyFutilePairs = 3;
constexpr double kClearlyFutile = 0.02;
constexpr uint32_t kHopelessPairs = 2;
constexpr double kHopeless = 0.1;
constexpr uint32_t kFutilePairs = 8;
constexpr double kFutile = -0.01;
constexpr double kFarOut = 1;  // e times more, or less

bool IsFutile(const BettingTest& test) {
  const auto above = [&](uint32_t pairs, double mean) { return test.count() >= pairs && test.mean() > mean; };
  return above(kHopelessPairs, kHopeless) || above(kClearlyFutilePairs, kClearlyFutile) ||
         above(kFutilePairs, kFutile) || test.count() >= kMostRounds - 1;
}

}  // namespace

void GuardedKey::Use(const CollectiveConfig& choice, const std::vector<CollectiveConfig>& trials) {
  if (choice != choice_) {
    choice_ = choice;
    account_.Restart();
    pairs_ = PairedTimes();
    slower_ = BettingTest(-kLeastGain, kWinsorisedRatio);
    trials_.clear();
  }
  std::vector<Trial> used;
  for (const CollectiveConfig& config : trials) {
    const auto under_way = std::find_if(trials_.begin(), trials_.end(),
                                        [&](const Trial& trial) { return trial.candidate.config == config; });
    if (under_way != trials_.end()) {
      used.push_back(*under_way);
      continue;
    }
    const auto known = std::find_if(candidates_.begin(), candidates_.end(),
                                    [&](const auto& candidate) { return candidate.config == config; });
    used.emplace_back();
    used.back().candidate = known != candidates_.end() ? *known : ProbeCandidate{config, 1};
  }
  trials_ = std::move(used);
}

void GuardedKey::Take(const GuardedCall& call) {
  ++calls_;
  captured_ |= call.captured;
  const bool is_timed = call.transfer_ns > 0 && !call.captured;
  const double ns = is_timed ? static_cast<double>(call.compared_ns()) : -1;
  timed_ += is_timed ? 1 : 0;
  if (call.use == CallUse::kTrial) {
    if (is_timed) TakeTrial(call.config, ns);
    return;
  }
  if (call.config != choice_ && !call.config.leaves_nccl_alone()) return;  // an older version's
  const bool is_default = call.config.leaves_nccl_alone();
  if (call.on_suspicion && is_timed) {
    is_default ? account_.TakeDefault(-1) : account_.TakeChoiceOnSuspicion(ns);
    return;
  }
  is_default ? account_.TakeDefault(ns) : account_.TakeChoice(ns);
  if (!is_timed) return;
  TakeCompared(call, std::log(ns));
}

// Beside the calls that it is compared with.
void GuardedKey::TakeCompared(const GuardedCall& call, double log_time) {
  const bool is_default = call.config.leaves_nccl_alone();
  if (call.config == choice_) {
    for (Trial& trial : trials_) {
      if (const auto ratio = trial.pairs.TakeCommon(log_time)) TakePair(trial, *ratio);
    }
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
  if (choice.count() > 0) trial_cost_ns_ += std::max(0.0, ns - choice.mean());
  for (Trial& trial : trials_) {
    if (trial.candidate.config != config) continue;
    if (IsTooSlow(trial, ns)) {
      trial.state = Trial::State::kBarred;
      if (!IsBarred(config)) barred_.push_back(config);
      return;
    }
    // The first call of a config also sets up its connections.
    if (++trial.timed == 1) return;
    if (const auto ratio = trial.pairs.TakeRare(std::log(ns))) TakePair(trial, *ratio);
  }
}

// After some pairs in its favour one slow call is the fabric's, not the config's.
bool GuardedKey::IsTooSlow(const Trial& trial, double ns) const {
  const TimeLevel& nccl = account_.default_level();
  if (trial.better.count() >= kClearlyFutilePairs && trial.better.mean() < 0) return false;
  return nccl.count() > 0 && ns > kBarredTimes * std::max(trial.candidate.predicted, 0.5) * nccl.mean();
}

void GuardedKey::TakePair(Trial& trial, double ratio) {
  trial.better.Add(ratio);
  trial.ratio_sum += std::clamp(ratio, -kFarOut, kFarOut);
  if (trial.state != Trial::State::kOpen) return;
  const BettingTest& test = trial.better;
  if (test.count() >= kLeastPairs && test.Below(kWrongAdoption)) {
    trial.state = Trial::State::kBetter;
  } else if (IsFutile(test)) {
    trial.state = Trial::State::kFutile;
  }
}

void GuardedKey::Restart() {
  account_.Restart();
  pairs_ = PairedTimes();
  slower_ = BettingTest(-kLeastGain, kWinsorisedRatio);
  trials_.clear();
  barred_.clear();
  timed_ = 0;
}

bool GuardedKey::MustRevoke() const {
  if (choice_.leaves_nccl_alone()) return false;
  return account_.Overspent() || slower_.Below(kWrongRevocation);
}

bool GuardedKey::IsBarred(const CollectiveConfig& config) const {
  return std::find(barred_.begin(), barred_.end(), config) != barred_.end();
}

std::vector<CollectiveConfig> GuardedKey::OpenTrials() const {
  std::vector<CollectiveConfig> open;
  if (searching()) {
    for (const Trial& trial : trials_) {
      const bool goes_on = trial.state == Trial::State::kOpen || trial.state == Trial::State::kBetter;
      if (goes_on) open.push_back(trial.candidate.config);
    }
    return open;
  }
  for (const ProbeCandidate& candidate : candidates_) {
    if (open.size() == kMostTrials) break;
    if (!IsBarred(candidate.config) && candidate.config != choice_) open.push_back(candidate.config);
  }
  return open;
}

bool GuardedKey::MustStopTrial() const {
  return std::any_of(trials_.begin(), trials_.end(),
                     [](const Trial& trial) { return trial.state == Trial::State::kBarred; });
}

const Trial* GuardedKey::Winner() const {
  const Trial* best = nullptr;
  for (const Trial& trial : trials_) {
    if (trial.state == Trial::State::kBarred || trial.better.count() < kLeastPairs) continue;
    if (best == nullptr || trial.mean() < best->mean()) best = &trial;
  }
  return best != nullptr && best->state == Trial::State::kBetter ? best : nullptr;
}

bool GuardedKey::search_ended() const {
  return std::none_of(trials_.begin(), trials_.end(),
                      [](const Trial& trial) { return trial.state == Trial::State::kOpen; });
}

bool GuardedKey::all_trials_made() const {
  return std::all_of(trials_.begin(), trials_.end(), [](const Trial& trial) {
    return trial.timed > 0 || trial.state == Trial::State::kBarred;
  });
}

std::optional<double> GuardedKey::Ratio() const {
  if (choice_.leaves_nccl_alone() || slower_.count() == 0) return std::nullopt;
  return std::exp(-slower_.mean());
}

double GuardedKey::TakeTrialCost() {
  return std::exchange(trial_cost_ns_, 0.0);
}

}  // namespace dynamiccl
