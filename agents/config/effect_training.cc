// SPDX-License-Identifier: Apache-2.0
// Adam on all samples at once, since there are few. The loss is
//
//   sum over networks of  mean over samples (weight * weight of the fabric * huber(prediction - measured))
#include "agents/config/effect_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/huber_loss.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>

#include "agents/quantisation.h"
#include "agents/repeatable_math.h"
#include "src/policy/policy_checks.h"

namespace dynamiccl::agents {
namespace {

// Octaves above which an error counts linearly.
constexpr double kHuberDelta = 0.2;
// Weight decay keeps the weights small, so that inputs without a clear effect have none.
constexpr double kWeightDecay = 1e-4;
constexpr int kMaxFractionBits = 14;
// The standard error that is stated if nothing better is known, in octaves (10 %).
constexpr double kUnknownError = 0.1 / std::numbers::ln2;
// The least standard error that is stated, in octaves (1 %).
constexpr double kLeastError = 0.01 / std::numbers::ln2;

at::Tensor InputsOf(const std::vector<EffectSample>& samples) {
  at::Tensor inputs = at::empty({static_cast<int64_t>(samples.size()), kEffectInputs});
  float* value = inputs.data_ptr<float>();
  for (const EffectSample& sample : samples)
    for (const int16_t input : sample.inputs) *value++ = static_cast<float>(input) / kTokenOne;
  return inputs;
}

template <typename ValueOf>
// Returns a column of numbers, one for each sample.
at::Tensor Column(const std::vector<EffectSample>& samples, ValueOf value_of) {
  at::Tensor column = at::empty({static_cast<int64_t>(samples.size())});
  std::transform(samples.begin(), samples.end(), column.data_ptr<float>(),
                 [&](const EffectSample& sample) { return static_cast<float>(value_of(sample)); });
  return column;
}

// Draws the weight of each fabric in each network, and returns it for each sample: [network, sample].
at::Tensor FabricWeights(const std::vector<EffectSample>& samples, at::Generator& generator) {
  std::map<std::string, int64_t> fabrics;
  for (const EffectSample& sample : samples)
    fabrics.emplace(sample.topology, static_cast<int64_t>(fabrics.size()));
  const at::Tensor weights = BootstrapWeights(static_cast<int64_t>(fabrics.size()), generator);
  at::Tensor places = at::empty({static_cast<int64_t>(samples.size())}, at::kLong);
  for (size_t i = 0; i < samples.size(); ++i) places.data_ptr<int64_t>()[i] = fabrics.at(samples[i].topology);
  return weights.index_select(1, places);
}

// Sets the domain to the box that contains all inputs of the samples.
void FillDomain(const std::vector<EffectSample>& samples, PolicyTensors& t) {
  std::copy(samples.front().inputs.begin(), samples.front().inputs.end(), t.effect_domain_min);
  std::copy(samples.front().inputs.begin(), samples.front().inputs.end(), t.effect_domain_max);
  for (const EffectSample& sample : samples) {
    for (size_t i = 0; i < kEffectInputs; ++i) {
      t.effect_domain_min[i] = std::min(t.effect_domain_min[i], sample.inputs[i]);
      t.effect_domain_max[i] = std::max(t.effect_domain_max[i], sample.inputs[i]);
    }
  }
}

void QuantiseAll(const EffectNetworks& networks, PolicyTensors& t) {
  const int32_t* bits = t.effect.fraction_bits;
  Quantise(networks.weights_1, bits[0], Flat(t.effect_weights_1));
  Quantise(networks.bias_1, kTokenFractionBits + bits[0], Flat(t.effect_bias_1));
  Quantise(networks.weights_2, bits[1], Flat(t.effect_weights_2));
  Quantise(networks.bias_2, kActivationFractionBits + bits[1], Flat(t.effect_bias_2));
  Quantise(networks.weights_3, bits[2], Flat(t.effect_weights_3));
  Quantise(networks.bias_3, kActivationFractionBits + bits[2], Flat(t.effect_bias_3));
}

// Quantises with the finest scales with which no sum overflows.
Status QuantiseEffects(const EffectNetworks& networks, PolicyTensors& t) {
  const at::Tensor* weights[] = {&networks.weights_1, &networks.weights_2, &networks.weights_3};
  for (int layer = 0; layer < 3; ++layer)
    t.effect.fraction_bits[layer] = FractionBits(*weights[layer], kMaxFractionBits);
  for (;;) {
    QuantiseAll(networks, t);
    const int layer = OverflowingEffectLayer(t);
    if (layer < 0) return {};
    if (--t.effect.fraction_bits[layer] < kLeastLayerBits[layer]) break;
  }
  return MakeError(ErrorKind::kInternal,
                   "the weights for effects on steps are too large for 16 bits; train with another --seed");
}

// Chooses kGoldenPerAgent samples, evenly spread.
void FillGolden(const std::vector<EffectSample>& samples, PolicyTensors& t) {
  for (size_t i = 0; i < kGoldenPerAgent; ++i) {
    const EffectInputs& inputs = samples[i * samples.size() / kGoldenPerAgent].inputs;
    std::copy(inputs.begin(), inputs.end(), t.golden_effect_features[i]);
  }
}

int32_t FixedOctaves(double octaves) {
  return static_cast<int32_t>(std::lround(octaves * 65536));
}

}  // namespace

EffectNetworks TrainEffects(const std::vector<EffectSample>& samples,
                            const EffectTrainingSettings& settings) {
  at::Generator generator = at::detail::createCPUGenerator(settings.seed);
  EffectNetworks networks = InitialNetworks({kEffectInputs, kEffectFeatures, kEffectHidden}, generator);
  const at::Tensor inputs = InputsOf(samples);
  const at::Tensor measured = Column(samples, [](const EffectSample& sample) { return sample.octaves; });
  const at::Tensor weights = Column(samples, [](const EffectSample& sample) { return sample.weight; }) *
                             FabricWeights(samples, generator);
  Adam adam(networks.parameters(), settings.learning_rate, kWeightDecay);
  for (int iteration = 0; iteration < settings.iterations; ++iteration) {
    adam.ZeroGradients();
    const at::Tensor predicted = networks.Residuals(inputs);
    const at::Tensor loss =
        at::huber_loss(predicted, measured.expand_as(predicted), at::Reduction::None, kHuberDelta);
    (loss * weights).mean(1).sum().backward();
    adam.Step(static_cast<double>(iteration) / settings.iterations);
  }
  return networks;
}

std::vector<HeldOutEffect> PredictHeldOut(const std::vector<EffectSample>& samples,
                                          const EffectTrainingSettings& settings) {
  std::vector<HeldOutEffect> predicted(samples.size());
  std::map<std::string, std::vector<size_t>> of_fabric;
  for (size_t i = 0; i < samples.size(); ++i) of_fabric[samples[i].topology].push_back(i);
  const auto domain = std::make_unique<PolicyTensors>();
  for (const auto& [fabric, held_out] : of_fabric) {
    std::vector<EffectSample> others, asked;
    for (const EffectSample& sample : samples)
      if (sample.topology != fabric) others.push_back(sample);
    if (others.empty()) continue;
    FillDomain(others, *domain);
    for (const size_t i : held_out) {
      asked.push_back(samples[i]);
      predicted[i].known = KeepKnownInputs(*domain, asked.back().inputs);
    }
    const EffectNetworks networks = TrainEffects(others, settings);
    const c10::AutoGradMode no_gradients(false);
    const at::Tensor octaves = networks.Residuals(InputsOf(asked)).mean(0).contiguous();
    for (size_t i = 0; i < held_out.size(); ++i)
      predicted[held_out[i]].octaves = octaves.const_data_ptr<float>()[i];
  }
  return predicted;
}

EffectErrors ErrorsOf(const std::vector<EffectSample>& samples, const std::vector<HeldOutEffect>& predicted) {
  EffectErrors errors;
  double weights = 0, of_networks = 0, of_nothing = 0;
  std::map<std::string, size_t> fabrics;
  for (size_t i = 0; i < samples.size(); ++i) {
    ++fabrics[samples[i].topology];
    if (!predicted[i].known) continue;
    const EffectSample& sample = samples[i];
    const double noise = sample.error * sample.error;
    weights += sample.weight;
    of_networks += sample.weight * (std::pow(predicted[i].octaves - sample.octaves, 2) - noise);
    of_nothing += sample.weight * (std::pow(sample.octaves, 2) - noise);
    ++errors.judged;
  }
  errors.fabrics = fabrics.size();
  if (weights == 0) return errors;
  errors.predicted = std::sqrt(std::max(0.0, of_networks / weights));
  errors.nothing = std::sqrt(std::max(0.0, of_nothing / weights));
  return errors;
}

Result<EffectErrors> AddEffects(const std::vector<EffectSample>& measured,
                                const EffectTrainingSettings& settings, PolicyTensors& t) {
  const std::vector<EffectSample> samples = AsJobsAsk(measured);
  const EffectErrors errors = ErrorsOf(samples, PredictHeldOut(samples, settings));
  const EffectNetworks networks = TrainEffects(samples, settings);
  t.effect.count = static_cast<int32_t>(samples.size());
  t.effect.error = FixedOctaves(errors.judged == 0 ? kUnknownError : std::max(kLeastError, errors.predicted));
  DYNAMICCL_CHECK_OK(QuantiseEffects(networks, t));
  FillDomain(samples, t);
  FillGolden(samples, t);
  return errors;
}

}  // namespace dynamiccl::agents
