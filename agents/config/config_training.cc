// SPDX-License-Identifier: Apache-2.0
#include "agents/config/config_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/log.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/optim/adam.h>

#include <cmath>

#include "agents/config/fine_tuning.h"
#include "src/base/clock.h"

namespace dynamiccl::agents {
namespace {

// Octaves beyond which an error counts linearly: a fifth is what repeats of the same cell differ by on a busy
// machine.
constexpr double kHuberDelta = 0.2;
constexpr double kActivationCut = double{kActivationLimit} / (1 << kActivationFractionBits);
// Keeps weights small enough for 16 bits and the ensemble from inventing structure.
constexpr double kWeightDecay = 1e-4;

at::Tensor Uniform(at::IntArrayRef sizes, int64_t inputs, at::Generator& generator) {
  const double bound = std::sqrt(3.0 / static_cast<double>(inputs));
  return at::empty(sizes).uniform_(-bound, bound, generator);
}

ConfigNetworks InitialNetworks(at::Generator& generator) {
  ConfigNetworks networks;
  networks.weights_1 = Uniform({kEnsemble, kConfigHidden, kConfigInputs}, kConfigFeatures, generator);
  networks.weights_2 = Uniform({kEnsemble, kConfigHidden, kConfigHidden}, kConfigHidden, generator);
  // Small: an untrained ensemble is the cost model itself.
  networks.weights_3 = Uniform({kEnsemble, kConfigHidden}, kConfigHidden, generator) * 0.1;
  networks.bias_1 = at::zeros({kEnsemble, kConfigHidden});
  networks.bias_2 = at::zeros({kEnsemble, kConfigHidden});
  networks.bias_3 = at::zeros({kEnsemble});
  for (at::Tensor& parameter : networks.parameters()) parameter.requires_grad_(true);
  return networks;
}

struct SampleTensors {
  at::Tensor inputs;   // [row, kConfigInputs]
  at::Tensor targets;  // [row]
};

SampleTensors ToTensors(const std::vector<ConfigSample>& samples) {
  const auto rows = static_cast<int64_t>(samples.size());
  SampleTensors tensors{at::empty({rows, kConfigInputs}), at::empty({rows})};
  for (int64_t row = 0; row < rows; ++row) {
    const ConfigSample& sample = samples[static_cast<size_t>(row)];
    for (size_t i = 0; i < kConfigInputs; ++i) {
      tensors.inputs.data_ptr<float>()[row * kConfigInputs + static_cast<int64_t>(i)] =
          static_cast<float>(sample.inputs[i]) / kTokenOne;
    }
    tensors.targets.data_ptr<float>()[row] = static_cast<float>(sample.residual);
  }
  return tensors;
}

void TrainFurther(ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                  const ConfigTrainingSettings& settings, at::Generator& generator,
                  ConfigTrainingReport* report) {
  const int64_t start = MonotonicNanoseconds();
  const SampleTensors all = ToTensors(samples);
  const int64_t rows = all.targets.size(0);
  // Exponential weights of mean 1.
  const at::Tensor weights = -at::log(at::empty({kEnsemble, rows}).uniform_(1e-6, 1, generator));
  torch::optim::Adam adam(networks.parameters(),
                          torch::optim::AdamOptions(settings.learning_rate).weight_decay(kWeightDecay));
  for (int iteration = 0; iteration < settings.iterations; ++iteration) {
    const double progress = static_cast<double>(iteration) / settings.iterations;
    static_cast<torch::optim::AdamOptions&>(adam.param_groups()[0].options())
        .lr(settings.learning_rate * 0.5 * (1 + std::cos(progress * 3.14159265358979)));
    at::Tensor inputs = all.inputs, targets = all.targets, weight = weights;
    if (rows > settings.batch) {
      const at::Tensor chosen = at::randint(0, rows, {settings.batch}, generator, at::kLong);
      inputs = inputs.index_select(0, chosen);
      targets = targets.index_select(0, chosen);
      weight = weight.index_select(1, chosen);
    }
    adam.zero_grad();
    const at::Tensor predicted = networks.Residuals(inputs);
    const at::Tensor error =
        at::huber_loss(predicted, targets.expand_as(predicted), at::Reduction::None, kHuberDelta);
    // Sum over the networks: each has its own gradient, as if trained alone.
    (error * weight).mean(1).sum().backward();
    adam.step();
  }
  const c10::AutoGradMode no_gradients(false);
  const at::Tensor mean = networks.Residuals(all.inputs).mean(0);
  *report = {static_cast<double>(MonotonicNanoseconds() - start) * 1e-9,
             (mean - all.targets).abs().mean().item<double>(), all.targets.abs().mean().item<double>()};
}

}  // namespace

at::Tensor ConfigNetworks::Residuals(const at::Tensor& inputs) const {
  const at::Tensor copies = inputs.unsqueeze(0).expand({kEnsemble, -1, -1});
  const at::Tensor first =
      at::baddbmm(bias_1.unsqueeze(1), copies, weights_1.transpose(1, 2)).clamp(0, kActivationCut);
  const at::Tensor second =
      at::baddbmm(bias_2.unsqueeze(1), first, weights_2.transpose(1, 2)).clamp(0, kActivationCut);
  return at::baddbmm(bias_3.view({kEnsemble, 1, 1}), second, weights_3.unsqueeze(2)).squeeze(2);
}

std::vector<at::Tensor> ConfigNetworks::parameters() const {
  return {weights_1, bias_1, weights_2, bias_2, weights_3, bias_3};
}

ConfigNetworks TrainConfig(const std::vector<ConfigSample>& samples, const ConfigTrainingSettings& settings,
                           ConfigTrainingReport* report) {
  at::Generator generator = at::detail::createCPUGenerator(settings.seed);
  ConfigNetworks networks = InitialNetworks(generator);
  TrainFurther(networks, samples, settings, generator, report);
  return networks;
}

void ContinueTraining(ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                      const ConfigTrainingSettings& settings, ConfigTrainingReport* report) {
  at::Generator generator = at::detail::createCPUGenerator(settings.seed);
  TrainFurther(networks, samples, settings, generator, report);
}

}  // namespace dynamiccl::agents
