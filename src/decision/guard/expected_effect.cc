// SPDX-License-Identifier: Apache-2.0
// A finding's weight is a product with one factor for each way in which the finding's job differs from the
// job in question.
#include "src/decision/guard/expected_effect.h"

#include <algorithm>
#include <cmath>

#include "src/policy/effect_inference.h"

namespace dynamiccl {
namespace {

// A difference of this size multiplies a finding's weight by 0.61 (it is one standard deviation of the
// kernel). The differences are in octaves of slowness, in the share of a step that is communication, and in
// octaves of the rank count.
constexpr double kSlownessApart = 0.5;
constexpr double kShareApart = 0.25;
constexpr double kRanksApart = 2;
// Factors of a finding's weight if its job calls other collectives, and if its config has another algorithm
// with the same protocol and channels.
constexpr double kOtherCollectives = 0.25;
constexpr double kOtherAlgorithm = 0.3;
// Effects of one config in like circumstances differ by about this much from place to place, in logs. A
// finding whose own standard error is larger than this has less than half of the weight.
constexpr double kUsualSpread = 0.05;
// The prediction includes the assumption that a config changes nothing, give or take 10 %. This assumption
// has the weight of 0.7 findings.
constexpr double kPriorWeight = 0.7;
constexpr double kPriorError = 0.1;
// There is no prediction if the weights of all findings add up to less than this.
constexpr double kLeastWeight = 0.2;
// A config is promising if its predicted gain, in logs, is at least kPromisedGain and at least
// kPromisedErrors standard deviations of the prediction. The promise need not be sure: simulated jobs of 400
// steps lost the time of at most four steps if it did not hold, and saved the time of at least twenty steps
// if it held (docs/results/guard.md, "What other places found").
constexpr double kPromisedGain = 0.05;
constexpr double kPromisedErrors = 1;

// Two runs in one place count as alike if their slowness differs by at most this many octaves. A busy host
// alone makes calls take 1.5 times as long, and a smaller limit would take such a host for another fabric.
constexpr double kLikeSlowness = 1;

double Squared(double value) {
  return value * value;
}

// Returns the weight of a finding about `found` for the question `asked`, from 0 to 1. The weight is 0 if one
// of the two jobs is inside a single node and the other is not, because other links then carry the calls.
double Likeness(const FindingKey& found, const FindingKey& asked) {
  if (found.protocol != asked.protocol || found.channels != asked.channels) return 0;
  if ((found.place.n_nodes > 1) != (asked.place.n_nodes > 1)) return 0;
  const double octaves = std::log2(static_cast<double>(found.place.n_ranks) / asked.place.n_ranks);
  const double algorithm = found.algorithm == asked.algorithm ? 1 : kOtherAlgorithm;
  const double collectives = found.collectives == asked.collectives ? 1 : kOtherCollectives;
  return algorithm * collectives * std::exp(-Squared(octaves / kRanksApart) / 2);
}

// Returns the factor of a finding's weight for its own standard error, from 0 to 1.
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
  const double spread = squares - Squared(sum) / weights;  // around the mean of the findings
  const double variance = (spread + kPriorWeight * Squared(kPriorError)) / all;
  return StepEffect{sum / all, std::sqrt(variance * (1 + 1 / all))};
}

std::optional<StepEffect> PredictedEffectOf(const Policy& policy, const Fabric& fabric,
                                            const EffectQuestion& question) {
  const FindingKey& asked = question.subject;
  const auto predicted = PredictEffect(policy.tensors, {.collectives = asked.collectives,
                                                        .slowness = question.circumstances.slowness,
                                                        .share = question.circumstances.share,
                                                        .fabric = fabric,
                                                        .algorithm = asked.algorithm,
                                                        .protocol = asked.protocol,
                                                        .channels = asked.channels});
  if (!predicted) return std::nullopt;
  // A policy cannot know this job better than places resemble each other, whatever error its file states.
  return StepEffect{predicted->mean, std::max(predicted->error, kUsualSpread)};
}

std::optional<Expectation> ExpectedBy(const ExpectationSources& sources, const EffectQuestion& question,
                                      int64_t now_s) {
  if (sources.store != nullptr) {
    if (const auto found = ExpectedEffect(*sources.store, question, now_s))
      return Expectation{*found, ExpectedFrom::kOtherPlaces};
  }
  if (sources.policy != nullptr) {
    if (const auto predicted = PredictedEffectOf(*sources.policy, sources.fabric, question))
      return Expectation{*predicted, ExpectedFrom::kPolicy};
  }
  return std::nullopt;
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

TablePlan FirstPlan(const Policy* policy) {
  TablePlan plan;
  plan.others_use_policy = policy == nullptr || policy->tensors.effect.count == 0;
  return plan;
}

bool IsPromising(const StepEffect& expected) {
  return expected.mean < -kPromisedGain && expected.mean < -kPromisedErrors * expected.error;
}

}  // namespace dynamiccl
