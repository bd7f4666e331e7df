// SPDX-License-Identifier: Apache-2.0
// The search has three stages. First it tries each setting and each config alone. Then it combines the best
// settings with the best configs, and gives up the slower half of the candidates again and again until two
// are left. These two run until their intervals decide.
#include "tools/tune/tune_search.h"

#include <algorithm>
#include <cmath>

#include "tools/ab/rule_settings.h"

namespace dynamiccl {
namespace {

// Number of the best settings and of the best configs that are combined with each other.
constexpr size_t kCombinedOfEach = 2;
// A setting or config is not combined with others if its step time is more than this many times that of the
// unchanged job. No other change makes up for such a loss.
constexpr double kNotCombined = 1.05;
constexpr size_t kFinalists = 2;
// The most candidates of one turn, that is one run of each candidate and one of the unchanged job. A turn
// with more takes minutes. In that time the machine may change, and the runs could not be compared with that
// of the unchanged job.
constexpr size_t kMostInTurn = 4;
// Turns (one run of each finalist and one of the unchanged job) after which the final decides. The
// signed-rank interval needs at least six. Twelve make it a third narrower; more would take too much time.
constexpr size_t kFewestTurns = 6;
constexpr size_t kMostTurns = 12;

}  // namespace

TuneSearch::TuneSearch(const CandidateList& list, int level_rounds) : level_rounds_(level_rounds) {
  tried_.push_back({});
  for (const Candidate& candidate : list.framework) tried_.push_back({candidate});
  first_config_ = tried_.size();
  for (const Candidate& candidate : list.configs) tried_.push_back({candidate});
}

std::vector<size_t> TuneSearch::NextTurn() {
  std::erase_if(pending_, [&](size_t candidate) { return !tried_[candidate].in; });
  if (pending_.empty()) BeginRound();
  if (stage_ == Stage::kOver || pending_.empty()) return {};
  const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(std::min(pending_.size(), kMostInTurn));
  std::vector<size_t> turn(pending_.begin(), end);
  pending_.erase(pending_.begin(), end);
  turn.insert(turn_ % 2 == 0 ? turn.begin() : turn.end(), 0);
  ++turn_;
  return turn;
}

void TuneSearch::BeginRound() {
  if (round_ > 0) Advance();
  pending_ = In();
  if (round_ % 2 == 1) std::ranges::reverse(pending_);
  ++round_;
}

void TuneSearch::GiveUp(size_t candidate, const std::string& why) {
  tried_[candidate].in = false;
  tried_[candidate].given_up = why;
}

void TuneSearch::Fail(size_t candidate, const std::string& why) {
  GiveUp(candidate, why);
  tried_[candidate].failed = true;
}

TunedRatio TuneSearch::RatioOf(size_t candidate) const {
  std::vector<double> over;
  const std::map<int, double>& times = tried_[candidate].step_ms;
  const auto of_final = times.upper_bound(final_after_);
  for (auto at = of_final == times.end() ? times.begin() : of_final; at != times.end(); ++at) {
    const auto& [turn, step_ms] = *at;
    const auto own = tried_[0].step_ms.find(turn);
    if (own != tried_[0].step_ms.end()) over.push_back(std::log(step_ms / own->second));
  }
  if (over.empty()) return {};
  const MiddleEstimate estimate = SignedRankEstimate(over);
  return {.ratio = std::exp(estimate.middle),
          .interval = {std::exp(estimate.interval.low), std::exp(estimate.interval.high)},
          .turns = over.size()};
}

bool TuneSearch::RanInFinal(size_t candidate) const {
  const std::map<int, double>& times = tried_[candidate].step_ms;
  return times.upper_bound(final_after_) != times.end();
}

size_t TuneSearch::Best() const {
  size_t best = 0;
  for (size_t i = 1; i < tried_.size(); ++i) {
    const TunedRatio ratio = RatioOf(i);
    if (tried_[i].failed || !RanInFinal(i) || ratio.turns < kFewestTurns || ratio.interval.high >= 1 ||
        ratio.ratio > 1 - kWorthwhile)
      continue;
    if (best == 0 || ratio.ratio < RatioOf(best).ratio) best = i;
  }
  return best;
}

std::vector<size_t> TuneSearch::In() const {
  std::vector<size_t> in;
  for (size_t i = 1; i < tried_.size(); ++i)
    if (tried_[i].in) in.push_back(i);
  return in;
}

std::vector<size_t> TuneSearch::Ranked() const {
  std::vector<size_t> ranked = In();
  std::ranges::stable_sort(ranked, {}, [&](size_t candidate) { return RatioOf(candidate).ratio; });
  return ranked;
}

void TuneSearch::Advance() {
  if (stage_ != Stage::kFinal && ++in_level_ < level_rounds_) return;
  in_level_ = 0;
  if (stage_ == Stage::kSingles) {
    CombineBest();
    stage_ = Stage::kHalving;
  } else if (stage_ == Stage::kHalving) {
    KeepFastest(std::max(kFinalists, (In().size() + 1) / 2));
  }
  if (stage_ == Stage::kFinal) {
    Judge();
  } else if (In().size() <= kFinalists) {
    stage_ = Stage::kFinal;
    final_after_ = turn_;
  }
}

void TuneSearch::CombineBest() {
  std::vector<size_t> settings, configs;
  for (const size_t candidate : Ranked()) {
    std::vector<size_t>& list = candidate < first_config_ ? settings : configs;
    if (list.size() < kCombinedOfEach && RatioOf(candidate).ratio < kNotCombined) list.push_back(candidate);
  }
  KeepFastest(std::max(kFinalists, In().size() / 2));
  for (const size_t setting : settings)
    for (const size_t config : configs) {
      Candidate both = Combined(tried_[setting].candidate, tried_[config].candidate);
      // A user may name settings that contain configs, and two configs for one call are not a valid setting.
      if (!RulesOfSetting(both.config)) continue;
      tried_.push_back({std::move(both)});
      tried_.back().candidate.predicted = RatioOf(setting).ratio * RatioOf(config).ratio;
    }
}

void TuneSearch::KeepFastest(size_t most) {
  const std::vector<size_t> ranked = Ranked();
  for (size_t i = most; i < ranked.size(); ++i) GiveUp(ranked[i], "others were faster");
}

void TuneSearch::Judge() {
  bool more = false;
  const size_t best = Best();
  for (const size_t candidate : In()) {
    const TunedRatio ratio = RatioOf(candidate);
    // Candidates are judged only every six turns. Judging after each turn would sooner or later find a
    // difference by chance.
    if (ratio.turns % kFewestTurns != 0) {
      more = true;
      continue;
    }
    const double to_beat = best == 0 || best == candidate ? 1 : RatioOf(best).ratio;
    const bool hopeless = ratio.interval.low > to_beat * (1 - kWorthwhile);
    const bool told = candidate == best || ratio.turns >= kMostTurns;
    if (hopeless) GiveUp(candidate, "no more than 0.5 % is to be expected of it");
    more = more || !(hopeless || told);
  }
  if (!more) stage_ = Stage::kOver;
}

}  // namespace dynamiccl
