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
};

// One sample a measured config that the cost model can price.
std::vector<ConfigSample> SamplesOf(const std::vector<SweptKey>& keys);

// The same with the cost model unknown to whoever learns: the residual is log2 of the picoseconds less
// `offset`, and the inputs that come from the model are 0.
std::vector<ConfigSample> SamplesWithoutPrior(const std::vector<SweptKey>& keys, double offset);
ConfigInputs WithoutPrior(ConfigInputs inputs);

}  // namespace dynamiccl::agents
