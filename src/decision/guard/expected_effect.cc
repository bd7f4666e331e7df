// SPDX-License-Identifier: Apache-2.0
// How much a finding counts is a product of one factor for each way in which it differs from the question.
#include "src/decision/guard/expected_effect.h"

#include <cmath>

namespace dynamiccl {
namespace {

// Differences at which a finding counts 0.61 as much (one standard deviation of the kernel): in octaves of
// slowness, in shares of a step, and in octaves of the number of ranks.
constexpr double kSlownessApart = 0.5;
constexpr double kShareApart = 0.25;
constexpr double kRanksApart = 2;
// Factors for a job that calls other collectives, and for a config of another algorithm with the same
// protocol and as many channels.
constexpr double kOtherCollectives = 0.25;
constexpr double kOtherAlgorithm = 0.3;
// Effects in like circumstances differ by about this much from place to place, in logs. A finding with a
// larger error counts less.
constexpr double kUsualSpread = 0.05;
// The assumption that a config changes nothing, give or take 10 %, counts as much as this many findings.
constexpr double kPriorWeight = 0.7;
constexpr double kPriorError = 0.1;
// Findings that count less than this together say nothing.
constexpr double kLeastWeight = 0.2;
// A config is promising if it is expected to gain so much, by so many standard deviations. It need not be
// sure: a promise that did not hold made simulated jobs of 400 steps longer by four more steps at most, and
// one that holds saves at least twenty (docs/results/guard.md, "What other places found").
constexpr double kPromisedGain = 0.05;
constexpr double kPromisedErrors = 1;

// Circumstances of one place are like each other up to so many octaves of slowness: a busy host alone makes
// calls half as slow again.
constexpr double kLikeSlowness = 1;

double Squared(double value) {
  return value * value;
}

// Returns how much a finding about `found` counts for `asked`, from 0 to 1. Inside one node and between
// nodes other links carry the calls, so neither says anything about the other.
double Likeness(const FindingKey& found, const FindingKey& asked) {
  if (found.protocol != asked.protocol || found.channels != asked.channels) return 0;
  if ((found.place.n_nodes > 1) != (asked.place.n_nodes > 1)) return 0;
  const double octaves = std::log2(static_cast<double>(found.place.n_ranks) / asked.place.n_ranks);
  const double algorithm = found.algorithm == asked.algorithm ? 1 : kOtherAlgorithm;
  const double collectives = found.collectives == asked.collectives ? 1 : kOtherCollectives;
  return algorithm * collectives * std::exp(-Squared(octaves / kRanksApart) / 2);
}

// Returns how much a finding counts for its own error, from 0 to 1.
double Sureness(const StepFinding& finding) {
  return Squared(kUsualSpread) / (Squared(kUsualSpread) + Squared(finding.error));
}

double Likeness(const Circumstances& found, const Circumstances& asked) {
  return std::exp(-(Squared((found.slowness - asked.slowness) / kSlownessApart) +
                    Squared((found.share - asked.share) / kShareApart)) /
                  2);
}

}  // namespace

std::optional<StepEffect> ExpectedEffect(const SiteStore& store, const EffectQuestion& question,
                                         int64_t now_s) {
  double weights = 0, sum = 0, squares = 0;
  for (const auto& [key, finding] : store.findings()) {
    if (!IsTrusted(finding.found_s, now_s)) continue;
    const double weight = Likeness(key, question.subject) *
                          Likeness(finding.circumstances, question.circumstances) * Sureness(finding);
    weights += weight;
    sum += weight * finding.effect;
    squares += weight * (Squared(finding.effect) + Squared(finding.error));
  }
  if (weights < kLeastWeight) return std::nullopt;
  const double all = weights + kPriorWeight;
  const double spread = squares - Squared(sum) / weights;  // of the findings around their own mean
  const double variance = (spread + kPriorWeight * Squared(kPriorError)) / all;
  return StepEffect{sum / all, std::sqrt(variance * (1 + 1 / all))};
}

bool BeganLike(const SiteStore& store, const SitePlace& place, const Circumstances& circumstances,
               int64_t now_s) {
  bool knows_place = false;
  for (const auto& [key, finding] : store.findings()) {
    if (key.place != place || !IsTrusted(finding.found_s, now_s)) continue;
    knows_place = true;
    if (std::abs(finding.circumstances.slowness - circumstances.slowness) <= kLikeSlowness) return true;
  }
  return !knows_place;
}

bool IsPromising(const StepEffect& expected) {
  return expected.mean < -kPromisedGain && expected.mean < -kPromisedErrors * expected.error;
}

}  // namespace dynamiccl
