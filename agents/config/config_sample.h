// SPDX-License-Identifier: Apache-2.0
// What the config agent learns from: one measured config of one key, as inputs and the residual over the cost
// model.
#pragma once

#include <vector>

#include "agents/config/swept_key.h"

namespace dynamiccl::agents {

struct ConfigSample {
  ConfigInputs inputs{};
  double residual = 0;  // log2(measured time / cost model's cost)
  // Configs of one key are compared with each other, so their samples stand together with one number.
  size_t key = 0;
  double weight = 1;  // of the key
  double noise = 0;   // log2: standard error of the measured median, from the spread of its repeats
};

// One sample a measured config that the cost model can price. A file weighs as the square root of its number
// of keys: a hundred keys that were measured count beside thousands that were simulated.
std::vector<ConfigSample> SamplesOf(const std::vector<SweptKey>& keys);

// The same with the cost model unknown to whoever learns: the residual is log2 of the picoseconds less
// `offset`, and the inputs that come from the model are 0.
std::vector<ConfigSample> SamplesWithoutPrior(const std::vector<SweptKey>& keys, double offset);
ConfigInputs WithoutPrior(ConfigInputs inputs);

}  // namespace dynamiccl::agents
