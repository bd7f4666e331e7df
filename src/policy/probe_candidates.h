// SPDX-License-Identifier: Apache-2.0
// Selects from predictions the configurations that are worth trying on a key. The candidates are
// - the best five by the prior (NCCL's cost model, corrected by the policy where it was trained),
// - the next channel counts on both sides of the best one,
// - and, if there are enough calls to try more, the best by the cost model alone, in case the policy is
//   wrong.
// NCCL's own choice is not among them. All functions are pure.
#pragma once

#include <vector>

#include "src/collective/collective_config.h"
#include "src/policy/config_features.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// One configuration to try.
struct ProbeCandidate {
  CollectiveConfig config;
  double predicted = 1;        // time over the time of NCCL's choice
  bool of_nccls_pair = false;  // has the algorithm and protocol that NCCL uses by itself
};

// Holds what is known about NCCL's own choice beyond the cost model's prediction.
struct NcclsOwn {
  CollectiveConfig pair;  // algorithm and protocol; kLeaveNcclAlone: not known
  bool channels_are_known = true;
};

// A configuration with its two predictions, log2 of picoseconds.
struct PricedConfig {
  CollectiveConfig config;
  double by_model = 0;  // prediction of NCCL's cost model
  double believed = 0;  // the same prediction, corrected by the policy where the policy applies
};

// The prices of NCCL's choice and of every other configuration of a key.
struct PricedKey {
  PricedConfig by_default;
  std::vector<PricedConfig> others;

  // Returns log2 of the predicted time over that of NCCL's choice.
  double Over(const PricedConfig& one) const { return one.believed - by_default.believed; }
};

// Prices all configurations of a key. `policy` may be null: then only the cost model is used. Returns an
// empty key if the cost model cannot price NCCL's choice.
PricedKey PriceAll(const Policy* policy, const CostModelInput& input, const ConfigQuestion& question);

// Returns every configuration that the communicator can use and the cost model can price, except NCCL's
// choice, in the order in which a job should try them. A pair of algorithm and protocol is left out if its
// best price is over twice that of NCCL's choice: an unusual fabric changes which channel counts are good,
// but hardly what a protocol for small messages costs for large ones. First come, for each pair, one channel
// and the number with the best price; then half of NCCL's channels; then the rest by price. NCCL's own pair
// is the first, the others follow by price. Predictions do not know the peculiarities of a fabric, but
// configurations that differ much from each other are affected in different ways. If the number of NCCL's
// channels is not known, the choice that the model expects of NCCL is a candidate too, because NCCL may use
// other channels.
std::vector<ProbeCandidate> UnlikeFirst(const Policy* policy, const CostModelInput& input,
                                        const ConfigQuestion& question, const NcclsOwn& own = {});

// Returns how much a measurement of one configuration tells about another, at most 1. It is largest if only
// the number of channels differs, and differs little.
double Kinship(const CollectiveConfig& a, const CollectiveConfig& b);

}  // namespace dynamiccl
