// SPDX-License-Identifier: Apache-2.0
// Both learners train the config agent's networks (config/config_training.h) on other targets.
#include "studies/agents/baselines/config_baselines_learned.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "agents/config/config_training.h"

namespace dynamiccl::agents {
namespace {

// Subtracted from log2 picoseconds, so that targets lie near 0. 2^28 ps are 0.3 ms, a middle value for
// collectives.
constexpr double kOffset = 28;
// The factor by which the next call's cost is discounted.
constexpr double kDiscount = 0.95;
// Number of iterations of fitted Q. Each iteration trains new networks.
constexpr int kRounds = 4;

// The ensemble's mean prediction for each row.
std::vector<float> Predict(const ConfigNetworks& networks, const std::vector<ConfigInputs>& inputs) {
  const c10::AutoGradMode no_gradients(false);
  at::Tensor rows = at::empty({static_cast<int64_t>(inputs.size()), kConfigInputs});
  float* target = rows.data_ptr<float>();
  for (const ConfigInputs& row : inputs) {
    for (const int16_t value : row) *target++ = static_cast<float>(value) / kTokenOne;
  }
  const at::Tensor means = networks.Residuals(rows).mean(0).contiguous();
  return {means.data_ptr<float>(), means.data_ptr<float>() + means.numel()};
}

// Chooses the measured configuration with the least prediction.
Chooser LeastOf(const std::string& name, const std::shared_ptr<const ConfigNetworks>& networks) {
  return {name, [networks](const SweptKey& key) {
            const ConfigContext context(key.model, key.question);
            std::vector<ConfigInputs> inputs;
            std::vector<CollectiveConfig> configs;
            for (const SweptConfig& swept : key.configs) {
              const ConfigAction action = context.Price(swept.config);
              if (action.prior <= 0) continue;
              inputs.push_back(WithoutPrior(context.Features(action)));
              configs.push_back(swept.config);
            }
            if (configs.empty()) return kLeaveNcclAlone;
            const std::vector<float> costs = Predict(*networks, inputs);
            const auto least = std::min_element(costs.begin(), costs.end()) - costs.begin();
            return configs[static_cast<size_t>(least)];
          }};
}

ConfigTrainingSettings Settings(uint64_t seed) {
  ConfigTrainingSettings settings;
  settings.seed = seed;
  return settings;
}

}  // namespace

Chooser NoPriorChooser(const std::vector<SweptKey>& seen, uint64_t seed) {
  ConfigTrainingReport report;
  return LeastOf("networks without prior", std::make_shared<ConfigNetworks>(TrainConfig(
                                               SamplesWithoutPrior(seen, kOffset), Settings(seed), &report)));
}

Chooser FittedQChooser(const std::vector<SweptKey>& seen, uint64_t seed) {
  const std::vector<ConfigSample> samples = SamplesWithoutPrior(seen, kOffset);
  std::vector<ConfigInputs> inputs;
  for (const ConfigSample& sample : samples) inputs.push_back(sample.inputs);
  std::mt19937_64 random(seed);
  // The least predicted cost of each key.
  std::vector<double> next(seen.size(), 0.0);
  std::shared_ptr<const ConfigNetworks> networks;
  ConfigTrainingReport report;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<ConfigSample> targets = samples;
    for (ConfigSample& target : targets) target.residual += kDiscount * next[random() % seen.size()];
    networks = std::make_shared<ConfigNetworks>(TrainConfig(targets, Settings(seed), &report));
    const std::vector<float> costs = Predict(*networks, inputs);
    std::fill(next.begin(), next.end(), std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < costs.size(); ++i)
      next[samples[i].key] = std::min(next[samples[i].key], static_cast<double>(costs[i]));
    for (double& least : next) least = std::isfinite(least) ? least : 0;
  }
  return LeastOf("DQN (fitted Q)", networks);
}

}  // namespace dynamiccl::agents
