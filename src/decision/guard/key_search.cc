// SPDX-License-Identifier: Apache-2.0
// A config is given up without a statistical test, because giving it up cannot cause a wrong adoption.
#include "src/decision/guard/key_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dynamiccl {
namespace {

// A config is given up when its steps are slower than the choice's by kSlower and by kSlowerErrors standard
// errors. One that makes steps 15 % slower goes at once, although one stall may look the same.
constexpr double kSlower = 0.02;
constexpr double kSlowerErrors = 2;
constexpr double kMuchSlower = 0.15;
// A config is also given up after kFutileSteps steps if a gain of kWorthwhile (half a per cent) lies this
// many standard errors away from its effect.
constexpr double kWorthwhile = 0.005;
constexpr double kFutileErrors = 1.5;
constexpr uint32_t kFutileSteps = 3;
// Until kFewSteps steps have used a config, the limit is a gain of 1 % in place of half a per cent.
constexpr uint32_t kFewSteps = 12;
constexpr double kWorthwhileAtFirst = 0.01;
// After n steps, the standard errors that an adoption needs are multiplied by 1 + kFewStepsMargin / n.
constexpr double kFewStepsMargin = 4;
// A config is not tried if configs that resemble it make steps slower by this much, in logs.
constexpr double kBadRelatives = 0.015;
// A config looks much faster when its steps take less time by kPromising, in logs, and by kPromisingErrors
// standard errors. Configs with at least kNearlyAsGood of the largest gain are tried beside the one that
// gains most.
constexpr double kPromising = 0.02;
constexpr double kPromisingErrors = 3;
constexpr double kNearlyAsGood = 0.6;
// Once the budget for slower steps is used up, only those arms are tried that look faster than the choice by
// this many standard errors.
constexpr double kLikelyErrors = 1.5;
// Configs whose expected effects, in logs, differ by less than this are tried in the order of the candidates.
constexpr double kEqualPromise = 0.002;
// The expected effect of an untried config is an average over configs that resemble it. The assumption that
// the config changes nothing has this weight in the average.
constexpr double kPriorWeight = 0.35;
// A config with at most this many channels starts few blocks of threads.
constexpr int kFewChannels = 2;
// If no used config resembles a config by more than this (Kinship), the config is expected to change nothing.
// So it is tried whatever other configs have shown.
constexpr double kFarRelative = 0.3;

// True if the arm has used up its patience (ArmPatience::uses_to_show).
bool HasWaited(const SeenConfig& arm, const ArmPatience& patience) {
  const auto shown = [&](uint32_t times) {
    const double error = patience.error_to_show / std::sqrt(times);
    return arm.steps >= times * patience.uses_to_show && (error == 0 || arm.effect.error <= error);
  };
  if (patience.uses_to_show == 0) return false;
  return (shown(1) && arm.effect.mean > 0) || (shown(2) && arm.effect.mean > -arm.effect.error);
}

template <class Configs>
bool Contains(const Configs& configs, const CollectiveConfig& config) {
  return std::find(configs.begin(), configs.end(), config) != configs.end();
}

}  // namespace

void KeySearch::SetCandidates(std::vector<ProbeCandidate> candidates) {
  candidates_ = std::move(candidates);
}

void KeySearch::PreferLowLatency() {
  size_t protocols = 0, narrow = 0;
  std::stable_partition(candidates_.begin(), candidates_.end(), [&](const ProbeCandidate& candidate) {
    const CollectiveConfig& config = candidate.config;
    const bool quick = config.protocol == Protocol::kLL || config.protocol == Protocol::kLL128;
    if (quick && protocols < kLowLatencyEach) return ++protocols > 0;
    return config.channels <= kFewChannels && narrow < kLowLatencyEach && ++narrow > 0;
  });
}

bool KeySearch::MayUse(const CollectiveConfig& config) const {
  return std::any_of(candidates_.begin(), candidates_.end(),
                     [&](const ProbeCandidate& candidate) { return candidate.config == config; });
}
bool KeySearch::IsOpen(const CollectiveConfig& config) const {
  return Contains(open_, config);
}
void KeySearch::GiveUp(const CollectiveConfig& config) {
  std::erase(open_, config);
  if (!IsClosed(config)) closed_.push_back(config);
}

bool KeySearch::IsClosed(const CollectiveConfig& config) const {
  return Contains(closed_, config);
}

bool KeySearch::Open(const CollectiveConfig& config) {
  if (IsOpen(config) || IsClosed(config)) return false;
  open_.push_back(config);
  return true;
}

std::vector<CollectiveConfig> KeySearch::Judge(const SeenOf& seen, const ArmPatience& patience) {
  std::vector<CollectiveConfig> urgent;
  std::vector<CollectiveConfig> stay;
  for (const CollectiveConfig& config : open_) {
    const SeenConfig arm = seen(config);
    const double mean = arm.effect.mean, error = arm.effect.error;
    const bool gross = (patience.gross_first_use > 0 && arm.first_off > patience.gross_first_use) ||
                       (patience.most_in_block > 0 && arm.block_excess > patience.most_in_block);
    const bool much = gross || (arm.steps > 0 && mean > kMuchSlower);
    const bool slower = arm.steps > 0 && mean > kSlower && mean > kSlowerErrors * error;
    const double least =
        std::max(patience.worthwhile, arm.steps < kFewSteps ? kWorthwhileAtFirst : kWorthwhile);
    const bool waited = HasWaited(arm, patience);
    const bool futile = arm.steps >= kFutileSteps && mean - kFutileErrors * error > -least;
    if (much || (slower && mean > kMuchSlower / 3)) urgent.push_back(config);
    (much || slower || waited || futile ? closed_ : stay).push_back(config);
  }
  open_ = std::move(stay);
  return urgent;
}

std::vector<CollectiveConfig> KeySearch::Next(const SeenOf& seen, bool all_may_cost) const {
  double best = 0;
  for (const CollectiveConfig& config : open_) {
    const SeenConfig arm = seen(config);
    if (LooksMuchFaster(arm)) best = std::min(best, arm.effect.mean);
  }
  if (best == 0 && all_may_cost) return open_;
  std::vector<CollectiveConfig> next;
  for (const CollectiveConfig& config : open_) {
    const StepEffect effect = seen(config).effect;
    const bool likely = all_may_cost || effect.mean < -kLikelyErrors * effect.error;
    if (effect.mean < kNearlyAsGood * best && likely) next.push_back(config);
  }
  return next;
}

std::optional<double> KeySearch::ExpectedOf(const CollectiveConfig& config, const SeenOf& seen) const {
  double sum = 0, weights = kPriorWeight, nearest = 0;
  for (const auto* configs : {&open_, &closed_}) {
    for (const CollectiveConfig& other : *configs) {
      const SeenConfig arm = seen(other);
      if (arm.steps == 0) continue;
      const double kin = Kinship(config, other);
      sum += kin * arm.effect.mean;
      weights += kin;
      nearest = std::max(nearest, kin);
    }
  }
  return nearest > kFarRelative ? std::optional(sum / weights) : std::nullopt;
}

void KeySearch::Refill(const CollectiveConfig& choice, const SeenOf& seen, size_t most) {
  began_ = true;
  std::vector<std::pair<double, CollectiveConfig>> next;
  for (const ProbeCandidate& candidate : candidates_) {
    const CollectiveConfig& config = candidate.config;
    if (config == choice || IsOpen(config) || IsClosed(config)) continue;
    const double expected = ExpectedOf(config, seen).value_or(0);
    if (expected < kBadRelatives) next.emplace_back(std::floor(expected / kEqualPromise), config);
  }
  std::stable_sort(next.begin(), next.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [expected, config] : next) {
    if (open_.size() >= most) break;
    open_.push_back(config);
  }
}

bool LooksMuchFaster(const SeenConfig& arm) {
  return arm.effect.mean < -std::max(kPromising, kPromisingErrors * arm.effect.error);
}

// After few steps the estimate of the noise itself is poor, so the config must be faster by more standard
// errors.
bool IsSurelyFaster(const SeenConfig& arm) {
  if (arm.blocks < kAdoptedBlocks || arm.effect.mean > -kLeastGain) return false;
  return arm.effect.mean < -kAdoptedErrors * (1 + kFewStepsMargin / arm.steps) * arm.effect.error;
}

std::optional<CollectiveConfig> KeySearch::Winner(const SeenOf& seen) const {
  std::optional<CollectiveConfig> best;
  double least = 0;
  for (const CollectiveConfig& config : open_) {
    const SeenConfig arm = seen(config);
    if (!IsSurelyFaster(arm) || arm.effect.mean >= least) continue;
    best = config;
    least = arm.effect.mean;
  }
  return best;
}

void KeySearch::Adopt(const CollectiveConfig& choice) {
  std::erase(open_, choice);
  std::erase(closed_, choice);
}

// Only configs whose single use set up connections are tried again. If the regression counts any step of a
// config, that step has judged it.
bool KeySearch::GiveSecondUse(const SeenOf& seen, double most) {
  const auto unjudged = [&](const CollectiveConfig& config) {
    const SeenConfig arm = seen(config);
    return arm.steps == 0 && arm.first_off > 0 && arm.first_off < most;
  };
  return std::erase_if(closed_, unjudged) > 0;
}

void KeySearch::Restart() {
  // Configs that were still open may be better than the choice, so they are tried first.
  std::stable_partition(candidates_.begin(), candidates_.end(),
                        [this](const ProbeCandidate& candidate) { return IsOpen(candidate.config); });
  open_.clear();
  closed_.clear();
  began_ = false;
}

}  // namespace dynamiccl
