// SPDX-License-Identifier: Apache-2.0
// What the config agent learns from: a measured configuration of a key, as inputs and as the residual over
// the cost model.
#pragma once

#include <vector>

#include "agents/config/swept_key.h"

namespace dynamiccl::agents {

// One measured configuration of one key.
struct ConfigSample {
  ConfigInputs inputs{};
  // log2(measured time / the cost model's cost), in octaves.
  double residual = 0;
  // The key's number. Configurations of one key are compared with each other, so their samples stand
  // together.
  size_t key = 0;
  // The weight of the key.
  double weight = 1;
  // Standard error of the measured median in octaves, estimated from the spread of its repeats.
  double noise = 0;
};

// One sample for each measured configuration that the cost model can price. The weight of a file is the
// square root of its number of keys, so that a hundred measured keys count beside thousands of simulated
// ones.
std::vector<ConfigSample> SamplesOf(const std::vector<SweptKey>& keys);

// The same for a learner that does not know the cost model: the residual is log2 of the picoseconds less
// `offset`, and inputs that come from the model are 0.
std::vector<ConfigSample> SamplesWithoutPrior(const std::vector<SweptKey>& keys, double offset);
// The inputs with those from the cost model set to 0.
ConfigInputs WithoutPrior(ConfigInputs inputs);

}  // namespace dynamiccl::agents
