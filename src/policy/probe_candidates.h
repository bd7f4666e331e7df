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

// Number of configurations that are tried because of the prior.
inline constexpr size_t kBestOfPrior = 5;

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

// Returns the candidates, best first. `policy` may be null: then only the cost model is used. `best_of_model`
// is how many of the cost model's own best are added. Only the search of dynamiccl-lab-agents uses this; jobs
// use UnlikeFirst.
std::vector<ProbeCandidate> ProbeCandidates(const Policy* policy, const CostModelInput& input,
                                            const ConfigQuestion& question, size_t best_of_model = 0);

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

// A measured configuration: its time over the time of NCCL's choice.
struct TriedConfig {
  CollectiveConfig config;
  double ratio = 1;
};

// Returns at most `most` configurations to try after all of `tried` were measured, best first. A measurement
// also corrects the prediction for similar configurations, most of all for those with the same algorithm and
// protocol and a similar number of channels. `in_use` is the time of the configuration in use over the time
// of NCCL's choice. Candidates have a corrected prediction of at most twice that time, because predictions
// are off by as much. NCCL's choice and what was tried are left out. Only the search of dynamiccl-lab-agents
// uses this.
std::vector<ProbeCandidate> FurtherCandidates(const Policy* policy, const CostModelInput& input,
                                              const ConfigQuestion& question,
                                              const std::vector<TriedConfig>& tried, double in_use,
                                              size_t most);

}  // namespace dynamiccl
