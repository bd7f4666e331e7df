// SPDX-License-Identifier: Apache-2.0
// A training example of the config agent. It describes one measured configuration of one key by the agent's
// inputs, and by the residual: the measured time relative to the cost model's cost, in octaves.
#pragma once

#include <vector>

#include "agents/config/swept_key.h"

namespace dynamiccl::agents {

// One measured configuration of one key.
struct ConfigSample {
  ConfigInputs inputs{};
  // log2(measured time / the cost model's cost), in octaves.
  double residual = 0;
  // Number of the key. Configurations of one key are compared with each other, so their samples are
  // consecutive.
  size_t key = 0;
  // Weight of the sample's key in the training loss.
  double weight = 1;
  // Standard error of the measured median in octaves, estimated from the spread of its repeats. Estimates of
  // cells with two or three repeats are rough, but the median of these estimates over many cells is reliable.
  double noise = 0;
};

// One sample for each measured configuration that the cost model can price. Each key has the weight 1 /
// sqrt(number of keys in its file). A file thus counts by the square root of its number of keys, so that a
// hundred measured keys still matter beside thousands of simulated ones.
std::vector<ConfigSample> SamplesOf(const std::vector<SweptKey>& keys);

// Makes samples for a learner without the cost model: the residual is log2 of the picoseconds minus `offset`,
// and inputs that come from the model are 0.
std::vector<ConfigSample> SamplesWithoutPrior(const std::vector<SweptKey>& keys, double offset);
// Returns `inputs` with those numbers set to 0 that come from the cost model.
ConfigInputs WithoutPrior(ConfigInputs inputs);

}  // namespace dynamiccl::agents
