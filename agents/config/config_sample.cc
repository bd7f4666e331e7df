// SPDX-License-Identifier: Apache-2.0
#include "agents/config/config_sample.h"

#include <cmath>

namespace dynamiccl::agents {
namespace {

double Log2Picoseconds(double microseconds) {
  return std::log2(microseconds * 1e6);
}

}  // namespace

std::vector<ConfigSample> SamplesOf(const std::vector<SweptKey>& keys) {
  std::vector<ConfigSample> samples;
  for (const SweptKey& key : keys) {
    const ConfigContext context(key.model, key.question);
    for (const SweptConfig& swept : key.configs) {
      const ConfigAction action = context.Price(swept.config);
      if (action.prior <= 0) continue;
      samples.push_back(
          {context.Features(action), Log2Picoseconds(swept.time.pick) - action.prior / 65536.0});
    }
  }
  return samples;
}

ConfigInputs WithoutPrior(ConfigInputs inputs) {
  inputs[static_cast<size_t>(ConfigFeature::kPrior)] = 0;
  inputs[static_cast<size_t>(ConfigFeature::kPriorOverBest)] = 0;
  inputs[static_cast<size_t>(ConfigFeature::kChannelsOverDefault)] = 0;
  return inputs;
}

std::vector<ConfigSample> SamplesWithoutPrior(const std::vector<SweptKey>& keys, double offset) {
  std::vector<ConfigSample> samples;
  for (const SweptKey& key : keys) {
    const ConfigContext context(key.model, key.question);
    for (const SweptConfig& swept : key.configs) {
      const ConfigAction action = context.Price(swept.config);
      if (action.prior <= 0) continue;
      samples.push_back({WithoutPrior(context.Features(action)), Log2Picoseconds(swept.time.pick) - offset});
    }
  }
  return samples;
}

}  // namespace dynamiccl::agents
