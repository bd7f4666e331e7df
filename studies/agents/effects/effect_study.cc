// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/effects/effect_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numbers>
#include <tuple>

#include "src/decision/guard/expected_effect.h"

namespace dynamiccl::agents {
namespace {

using Predictions = std::vector<HeldOutEffect>;

// All effects with the fabrics on which they were measured.
struct KnownEffects {
  std::vector<EffectSample> samples;
  std::vector<MeasuredEffect> measured;  // in the order of the samples
  std::vector<Fabric> fabrics;           // also in the order of the samples
};

KnownEffects Read(const std::vector<MeasurementFile>& files) {
  KnownEffects known{EffectSamplesOf(files, {}), {}, {}};
  for (const MeasurementFile& file : files) {
    std::map<std::string, Fabric> fabrics;
    for (const MeasurementContext& context : file.contexts) fabrics[context.topology] = context.model.fabric;
    for (const MeasuredEffect& effect : file.effects) {
      known.measured.push_back(effect);
      known.fabrics.push_back(fabrics.at(effect.topology));
    }
  }
  return known;
}

// Effects with the same value come from one experiment in one job.
auto JobOf(const MeasuredEffect& effect) {
  return std::tuple(effect.topology, effect.collectives, effect.role, effect.phase, effect.slowness,
                    effect.share);
}

FindingKey KeyOf(const MeasuredEffect& effect, const Fabric& fabric, uint8_t place) {
  FindingKey key;
  key.place.fabric[0] = place;
  key.place.n_ranks = fabric.n_ranks;
  key.place.n_nodes = fabric.n_nodes;
  key.collectives = effect.collectives;
  key.algorithm = effect.config.algorithm;
  key.protocol = effect.config.protocol;
  key.channels = effect.channel_count;
  return key;
}

// The regression by which jobs use what their site store knows about other places. It needs slowness and
// share.
Predictions BySiteStore(const KnownEffects& known) {
  Predictions predictions(known.measured.size());
  std::map<std::string, uint8_t> places;
  for (const MeasuredEffect& effect : known.measured)
    places.emplace(effect.topology, static_cast<uint8_t>(places.size()));
  for (const auto& [fabric, number] : places) {
    SiteStore others;
    for (size_t i = 0; i < known.measured.size(); ++i) {
      const MeasuredEffect& effect = known.measured[i];
      if (effect.topology == fabric || !effect.slowness) continue;
      others.Learn(KeyOf(effect, known.fabrics[i], places.at(effect.topology)),
                   {{*effect.slowness, *effect.share}, effect.log_ratio, effect.error, effect.steps, 1});
    }
    for (size_t i = 0; i < known.measured.size(); ++i) {
      const MeasuredEffect& effect = known.measured[i];
      if (effect.topology != fabric || !effect.slowness) continue;
      const EffectQuestion question{KeyOf(effect, known.fabrics[i], number),
                                    {*effect.slowness, *effect.share}};
      const auto expected = ExpectedEffect(others, question, 1);
      if (expected) predictions[i] = {expected->mean / std::numbers::ln2, true};
    }
  }
  return predictions;
}

// The mean effect of the same algorithm, protocol and channels on the other fabrics.
Predictions ByConfig(const KnownEffects& known) {
  Predictions predictions(known.measured.size());
  for (size_t i = 0; i < known.measured.size(); ++i) {
    double weights = 0, sum = 0;
    for (size_t j = 0; j < known.measured.size(); ++j) {
      const MeasuredEffect &asked = known.measured[i], &other = known.measured[j];
      const bool same = asked.config == other.config && asked.channel_count == other.channel_count;
      if (!same || asked.topology == other.topology) continue;
      weights += known.samples[j].weight;
      sum += known.samples[j].weight * known.samples[j].octaves;
    }
    if (weights > 0) predictions[i] = {sum / weights, true};
  }
  return predictions;
}

Predictions OfNoEffect(const KnownEffects& known) {
  return Predictions(known.measured.size(), {0, true});
}

// The networks' predictions, as means over seeds.
Predictions ByNetworks(const std::vector<EffectSample>& samples, EffectTrainingSettings settings, int seeds) {
  Predictions mean(samples.size());
  for (int seed = 0; seed < seeds; ++seed, ++settings.seed) {
    const Predictions one = PredictHeldOut(samples, settings);
    for (size_t i = 0; i < one.size(); ++i)
      mean[i] = {mean[i].octaves + one[i].octaves / seeds, one[i].known};
  }
  return mean;
}

// The config that a job would use: the sample with the least prediction, if it promises a gain.
struct Choice {
  double predicted = -kLeastGain;
  const EffectSample* sample = nullptr;
};

JudgedPredictor Judge(const std::string& name, const KnownEffects& known, const Predictions& predictions) {
  JudgedPredictor judged{name, ErrorsOf(known.samples, predictions), 0, 0, 0};
  std::map<decltype(JobOf(known.measured[0])), Choice> jobs;
  for (size_t i = 0; i < known.measured.size(); ++i) {
    Choice& choice = jobs[JobOf(known.measured[i])];
    if (!predictions[i].known || predictions[i].octaves >= choice.predicted) continue;
    choice = {predictions[i].octaves, &known.samples[i]};
  }
  for (const auto& [job, choice] : jobs) {
    if (choice.sample == nullptr) continue;
    ++judged.changed;
    judged.chosen += choice.sample->octaves * std::numbers::ln2 / static_cast<double>(jobs.size());
    const double surely = choice.sample->octaves - 2 * choice.sample->error;
    judged.worse += surely > 0 && choice.sample->octaves > std::log2(1.02);
  }
  return judged;
}

// Sets the number of jobs, and the mean effect of the configs that the jobs measured as the fastest.
void SetBest(const KnownEffects& known, EffectStudy& study) {
  std::map<decltype(JobOf(known.measured[0])), double> best;
  for (const MeasuredEffect& effect : known.measured) {
    double& least = best[JobOf(effect)];
    least = std::min(least, effect.log_ratio);
  }
  study.jobs = best.size();
  for (const auto& [job, least] : best) study.best += least / static_cast<double>(best.size());
}

std::vector<EffectSample> Without(const InputGroup& group, std::vector<EffectSample> samples) {
  for (EffectSample& sample : samples)
    for (const EffectFeature feature : group.features) sample.inputs[static_cast<size_t>(feature)] = 0;
  return samples;
}

std::string RowOf(const JudgedPredictor& judged, const EffectStudy& study) {
  const auto percent = [](double octaves) { return 100 * (std::exp2(octaves) - 1); };
  return fmt::format("| {} | {} of {} | {:.1f} | {:.1f} | {:.3f} | {} | {} |\n", judged.name,
                     judged.errors.judged, study.effects, percent(judged.errors.predicted),
                     percent(judged.errors.nothing), std::exp(judged.chosen), judged.changed, judged.worse);
}

constexpr char kHead[] =
    "| | predicted | error, % | of no effect, % | step over the default's | changed | worse |\n"
    "|---|---|---|---|---|---|---|\n";

}  // namespace

const std::vector<InputGroup>& InputGroups() {
  using F = EffectFeature;
  static const std::vector<InputGroup> groups = {
      {"collectives", {F::kBroadcast, F::kReduce, F::kAllGather, F::kReduceScatter, F::kAllReduce}},
      {"bytes", {F::kBytes}},
      {"ranks and nodes", {F::kRanks, F::kNodes}},
      {"links", {F::kIntraLatency, F::kIntraBandwidth, F::kInterLatency, F::kInterBandwidth}},
      {"role",
       {F::kParameterGather, F::kGradientReduce, F::kPostStepGather, F::kActivation, F::kScalar,
        F::kBackwardGather}},
      {"phase", {F::kForward, F::kBackward, F::kOptimizer}},
      {"exposed share", {F::kExposedKnown, F::kExposed}},
      {"slowness", {F::kSlowness}},
      {"share of the step", {F::kShare}},
      {"memory", {F::kMemory}},
      {"algorithm", {F::kTree, F::kRing, F::kPat, F::kOtherAlgorithm}},
      {"protocol", {F::kLL, F::kLL128, F::kSimple}},
      {"channels", {F::kOneChannel, F::kFewChannels, F::kManyChannels}}};
  return groups;
}

bool IsNeverKnown(const InputGroup& group, const std::vector<EffectSample>& samples) {
  return std::all_of(samples.begin(), samples.end(), [&](const EffectSample& sample) {
    return std::all_of(group.features.begin(), group.features.end(), [&](EffectFeature feature) {
      return sample.inputs[static_cast<size_t>(feature)] == 0;
    });
  });
}

EffectStudy StudyEffects(const std::vector<MeasurementFile>& files, const EffectTrainingSettings& settings,
                         int seeds) {
  const KnownEffects known = Read(files);
  EffectStudy study;
  study.effects = known.samples.size();
  if (known.samples.empty()) return study;
  SetBest(known, study);
  study.predictors = {Judge("networks", known, ByNetworks(known.samples, settings, seeds)),
                      Judge("site store", known, BySiteStore(known)),
                      Judge("mean of the config", known, ByConfig(known)),
                      Judge("no effect", known, OfNoEffect(known))};
  study.fabrics = study.predictors.front().errors.fabrics;
  for (const InputGroup& group : InputGroups()) {
    if (IsNeverKnown(group, known.samples)) continue;
    const Predictions predicted = ByNetworks(Without(group, known.samples), settings, seeds);
    study.without.push_back(Judge(group.name, known, predicted));
  }
  return study;
}

std::string FormatEffectStudy(const EffectStudy& study, const std::vector<EffectSample>& samples) {
  std::string text = fmt::format(
      "{} effects of {} jobs on {} fabrics, each fabric left out in turn. With the config that each "
      "job measured as the fastest, steps take {:.3f} of the default's.\n\n{}",
      study.effects, study.jobs, study.fabrics, std::exp(study.best), kHead);
  for (const JudgedPredictor& judged : study.predictors) text += RowOf(judged, study);
  text += fmt::format("\nThe networks without one group of inputs:\n\n{}", kHead);
  for (const JudgedPredictor& judged : study.without) text += RowOf(judged, study);
  for (const InputGroup& group : InputGroups())
    if (IsNeverKnown(group, samples)) text += fmt::format("| {} | never known | | | | | |\n", group.name);
  return text;
}

}  // namespace dynamiccl::agents
