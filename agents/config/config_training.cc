// SPDX-License-Identifier: Apache-2.0
// Adam on minibatches of whole keys. A row is one measured configuration, e is the error of a row's
// prediction, and m is the mean of e over the rows of a key. The loss of a batch is
//
//   sum over networks of  mean over rows (weight * huber(e - m)) + 0.1 * mean over keys (weight * huber(m))
//
// All three networks are trained at once. A network's parameters occur only in its own term of the sum, so
// the networks do not influence each other.
#include "agents/config/config_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

#include "agents/config/fine_tuning.h"
#include "agents/repeatable_math.h"
#include "src/base/clock.h"

namespace dynamiccl::agents {
namespace {

// Octaves above which an error counts linearly. 0.2 is the difference between repeats of the same cell on a
// busy machine.
constexpr double kHuberDelta = 0.2;
// Upper bound of the hidden layers' activation, as in the integer network.
constexpr double kActivationCut = double{kActivationLimit} / (1 << kActivationFractionBits);
// Weight decay keeps the weights small enough for 16-bit integers.
constexpr double kWeightDecay = 1e-5;
// Weight of the term for a key's mean error (its level), relative to the term for the errors around this
// mean.
constexpr double kLevelShare = 0.1;

// Uniform random numbers with mean 0 and variance 1 / inputs.
at::Tensor Uniform(at::IntArrayRef sizes, int64_t inputs, at::Generator& generator) {
  const double bound = std::sqrt(3.0 / static_cast<double>(inputs));
  return at::empty(sizes).uniform_(-bound, bound, generator);
}

// All samples as tensors, with the rows of each key together.
struct TrainingRows {
  // fp32 [row, kConfigInputs].
  at::Tensor inputs;
  // fp32 [row]: measured residuals.
  at::Tensor targets;
  // The number of the first row of each key. One more entry holds the number of all rows.
  std::vector<int64_t> first;
  std::vector<double> weights;

  int64_t keys() const { return static_cast<int64_t>(weights.size()); }
  int64_t rows() const { return first.back(); }
};

TrainingRows RowsOf(const std::vector<ConfigSample>& samples) {
  const auto rows = static_cast<int64_t>(samples.size());
  TrainingRows all{at::empty({rows, kConfigInputs}), at::empty({rows}), {}, {}};
  for (int64_t row = 0; row < rows; ++row) {
    const ConfigSample& sample = samples[static_cast<size_t>(row)];
    if (row == 0 || sample.key != samples[static_cast<size_t>(row - 1)].key) {
      all.first.push_back(row);
      all.weights.push_back(sample.weight);
    }
    for (size_t i = 0; i < kConfigInputs; ++i) {
      all.inputs.data_ptr<float>()[row * kConfigInputs + static_cast<int64_t>(i)] =
          static_cast<float>(sample.inputs[i]) / kTokenOne;
    }
    all.targets.data_ptr<float>()[row] = static_cast<float>(sample.residual);
  }
  all.first.push_back(rows);
  return all;
}

// A minibatch: some whole keys with all their rows.
struct Batch {
  // int64 [key]: numbers of the keys.
  at::Tensor keys;
  // int64 [row]: numbers of the rows among all rows.
  at::Tensor rows;
  // int64 [row]: the place of the row's key in `keys`.
  at::Tensor key_place;
  // fp32 [key]: the number of rows of each key.
  at::Tensor sizes;
};

at::Tensor Whole(const std::vector<int64_t>& values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

Batch BatchOf(const TrainingRows& all, const std::vector<int64_t>& keys) {
  std::vector<int64_t> rows, place, sizes;
  for (size_t k = 0; k < keys.size(); ++k) {
    const auto key = static_cast<size_t>(keys[k]);
    for (int64_t row = all.first[key]; row < all.first[key + 1]; ++row) {
      rows.push_back(row);
      place.push_back(static_cast<int64_t>(k));
    }
    sizes.push_back(all.first[key + 1] - all.first[key]);
  }
  return {Whole(keys), Whole(rows), Whole(place), Whole(sizes).to(at::kFloat)};
}

// The mean of `values` over the rows of each key: turns [network, row] into [network, key].
at::Tensor LevelsOf(const at::Tensor& values, const Batch& batch) {
  const at::Tensor zeros = at::zeros({values.size(0), batch.sizes.size(0)});
  return zeros.index_add(1, batch.key_place, values) / batch.sizes;
}

at::Tensor Huber(const at::Tensor& error) {
  return at::huber_loss(error, at::zeros_like(error), at::Reduction::None, kHuberDelta);
}

// The loss that the head of this file defines. `error` is [network, row], `weights` is [network, key].
at::Tensor LossOf(const at::Tensor& error, const at::Tensor& weights, const Batch& batch) {
  const at::Tensor levels = LevelsOf(error, batch);
  const at::Tensor within = error - levels.index_select(1, batch.key_place);
  const at::Tensor of_rows = (Huber(within) * weights.index_select(1, batch.key_place)).mean(1).sum();
  return of_rows + kLevelShare * (Huber(levels) * weights).mean(1).sum();
}

double MeanSize(const at::Tensor& tensor) {
  return tensor.abs().mean().item<double>();
}

ConfigTrainingReport ReportOf(const ConfigNetworks& networks, const TrainingRows& all) {
  const c10::AutoGradMode no_gradients(false);
  std::vector<int64_t> keys(static_cast<size_t>(all.keys()));
  std::iota(keys.begin(), keys.end(), 0);
  const Batch whole = BatchOf(all, keys);
  const at::Tensor measured = all.targets.unsqueeze(0);
  const at::Tensor error = networks.Residuals(all.inputs).mean(0, true) - measured;
  const auto within = [&](const at::Tensor& values) {
    return MeanSize(values - LevelsOf(values, whole).index_select(1, whole.key_place));
  };
  return {0, MeanSize(error), MeanSize(measured), within(error), within(measured)};
}

void TrainFurther(ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                  const ConfigTrainingSettings& settings, at::Generator& generator,
                  ConfigTrainingReport* report) {
  const int64_t start = MonotonicNanoseconds();
  const TrainingRows all = RowsOf(samples);
  const at::Tensor weights = BootstrapWeights(all.keys(), generator);
  std::mt19937_64 random(settings.seed);
  std::discrete_distribution<int64_t> draw(all.weights.begin(), all.weights.end());
  std::vector<int64_t> keys(
      static_cast<size_t>(std::max<int64_t>(1, settings.batch * all.keys() / all.rows())));
  Adam adam(networks.parameters(), settings.learning_rate, kWeightDecay);
  for (int iteration = 0; iteration < settings.iterations; ++iteration) {
    for (int64_t& key : keys) key = draw(random);
    const Batch batch = BatchOf(all, keys);
    adam.ZeroGradients();
    const at::Tensor error =
        networks.Residuals(all.inputs.index_select(0, batch.rows)) - all.targets.index_select(0, batch.rows);
    LossOf(error, weights.index_select(1, batch.keys), batch).backward();
    adam.Step(static_cast<double>(iteration) / settings.iterations);
    if (settings.observer) settings.observer({iteration + 1, settings.iterations, samples.size()});
  }
  *report = ReportOf(networks, all);
  report->seconds = static_cast<double>(MonotonicNanoseconds() - start) * 1e-9;
}

}  // namespace

ConfigNetworks InitialNetworks(const EnsembleShape& shape, at::Generator& generator) {
  const int64_t hidden = shape.hidden;
  ConfigNetworks networks;
  networks.weights_1 = Uniform({kEnsemble, hidden, shape.inputs}, shape.used, generator);
  networks.weights_2 = Uniform({kEnsemble, hidden, hidden}, hidden, generator);
  // The last layer starts with small weights. An untrained ensemble of times then predicts nearly what the
  // cost model says, and one of effects predicts nearly no change.
  networks.weights_3 = Uniform({kEnsemble, hidden}, hidden, generator) * 0.1;
  networks.bias_1 = at::zeros({kEnsemble, hidden});
  networks.bias_2 = at::zeros({kEnsemble, hidden});
  networks.bias_3 = at::zeros({kEnsemble});
  for (at::Tensor& parameter : networks.parameters()) parameter.requires_grad_(true);
  return networks;
}

// LibTorch's logarithm depends on the processor.
at::Tensor BootstrapWeights(int64_t count, at::Generator& generator) {
  const at::Tensor weights = at::empty({kEnsemble, count}).uniform_(1e-6, 1, generator);
  const std::span<float> drawn(weights.data_ptr<float>(), static_cast<size_t>(weights.numel()));
  for (float& weight : drawn) weight = -std::log(weight);
  return weights;
}

at::Tensor ConfigNetworks::Residuals(const at::Tensor& inputs) const {
  std::vector<at::Tensor> residuals;
  for (int64_t i = 0; i < kEnsemble; ++i) {
    const at::Tensor first = RepeatableLinear(inputs, weights_1[i], bias_1[i]).clamp(0, kActivationCut);
    const at::Tensor second = RepeatableLinear(first, weights_2[i], bias_2[i]).clamp(0, kActivationCut);
    residuals.push_back(
        RepeatableLinear(second, weights_3.narrow(0, i, 1), bias_3.narrow(0, i, 1)).squeeze(1));
  }
  return at::stack(residuals);
}

std::vector<at::Tensor> ConfigNetworks::parameters() const {
  return {weights_1, bias_1, weights_2, bias_2, weights_3, bias_3};
}

ConfigNetworks TrainConfig(const std::vector<ConfigSample>& samples, const ConfigTrainingSettings& settings,
                           ConfigTrainingReport* report) {
  at::Generator generator = at::detail::createCPUGenerator(settings.seed);
  ConfigNetworks networks = InitialNetworks({}, generator);
  TrainFurther(networks, samples, settings, generator, report);
  return networks;
}

void ContinueTraining(ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                      const ConfigTrainingSettings& settings, ConfigTrainingReport* report) {
  at::Generator generator = at::detail::createCPUGenerator(settings.seed);
  TrainFurther(networks, samples, settings, generator, report);
}

std::vector<ConfigSample> AtLevelsOf(const ConfigNetworks& networks, std::vector<ConfigSample> samples) {
  if (samples.empty()) return samples;
  const c10::AutoGradMode no_gradients(false);
  const TrainingRows all = RowsOf(samples);
  const at::Tensor predicted = networks.Residuals(all.inputs).mean(0).contiguous();
  for (size_t key = 0; key + 1 < all.first.size(); ++key) {
    const int64_t rows = all.first[key + 1] - all.first[key];
    double off = 0;
    for (int64_t row = all.first[key]; row < all.first[key + 1]; ++row)
      off += predicted.const_data_ptr<float>()[row] - samples[static_cast<size_t>(row)].residual;
    for (int64_t row = all.first[key]; row < all.first[key + 1]; ++row)
      samples[static_cast<size_t>(row)].residual += off / static_cast<double>(rows);
  }
  return samples;
}

}  // namespace dynamiccl::agents
