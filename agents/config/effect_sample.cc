// SPDX-License-Identifier: Apache-2.0
#include "agents/config/effect_sample.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

namespace dynamiccl::agents {
namespace {

// Effects of one config in like circumstances differ by about this much between fabrics, in octaves (5 %). A
// measured effect with a larger error than this has less than half of the weight.
constexpr double kUsualSpread = 0.05 / std::numbers::ln2;

// Scales the weights to the mean 1.
void Normalise(std::vector<EffectSample>& samples) {
  double sum = 0;
  for (const EffectSample& sample : samples) sum += sample.weight;
  for (EffectSample& sample : samples) sample.weight *= static_cast<double>(samples.size()) / sum;
}

}  // namespace

std::vector<EffectSample> AsJobsAsk(std::vector<EffectSample> samples) {
  using F = EffectFeature;
  for (EffectSample& sample : samples) {
    const auto forget = [&](F first, F last) {
      std::fill(sample.inputs.begin() + static_cast<int>(first),
                sample.inputs.begin() + static_cast<int>(last) + 1, int16_t{0});
    };
    forget(F::kBytes, F::kBytes);
    forget(F::kParameterGather, F::kExposed);  // roles, phases, exposed share
    forget(F::kMemory, F::kMemory);
  }
  return samples;
}

EffectSubject SubjectOf(const MeasuredEffect& effect, const Fabric& fabric) {
  return {.collectives = effect.collectives,
          .bytes = effect.bytes,
          .role = effect.role,
          .phase = effect.phase,
          .memory = effect.memory,
          .exposed = effect.exposed,
          .slowness = effect.slowness,
          .share = effect.share,
          .fabric = fabric,
          .algorithm = effect.config.algorithm,
          .protocol = effect.config.protocol,
          .channels = effect.channel_count};
}

std::vector<EffectSample> EffectSamplesOf(const std::vector<MeasurementFile>& files,
                                          const HoldOut& hold_out) {
  std::vector<EffectSample> samples;
  std::map<std::string, double> on_fabric;
  for (const MeasurementFile& file : files) {
    std::map<std::string, const Fabric*> fabrics;
    for (const MeasurementContext& context : file.contexts) fabrics[context.topology] = &context.model.fabric;
    for (const MeasuredEffect& effect : file.effects) {
      const auto fabric = fabrics.find(effect.topology);
      if (fabric == fabrics.end() || IsHeldOut(effect.topology, hold_out)) continue;
      if (hold_out.ranks > 0 && fabric->second->n_ranks == hold_out.ranks) continue;
      samples.push_back({EffectFeaturesOf(SubjectOf(effect, *fabric->second)),
                         effect.log_ratio / std::numbers::ln2, effect.error / std::numbers::ln2,
                         effect.topology, 1});
      ++on_fabric[effect.topology];
    }
  }
  for (EffectSample& sample : samples) {
    const double variance = kUsualSpread * kUsualSpread + sample.error * sample.error;
    sample.weight = 1 / (variance * std::sqrt(on_fabric[sample.topology]));
  }
  Normalise(samples);
  return samples;
}

}  // namespace dynamiccl::agents
