// SPDX-License-Identifier: Apache-2.0
// This file finds from predictions which configurations are worth trying on a key. The candidates are
// - the best five by the prior (NCCL's cost model, corrected by the policy where it was trained),
// - the next channel counts on both sides of the best one,
// - and, where there are calls enough to try more, the best by the cost model alone, which knows better where
//   the policy was misled.
// NCCL's own choice is not among them. All functions are pure.
#pragma once

#include <vector>

#include "src/collective/collective_config.h"
#include "src/policy/config_features.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// Configurations that are tried because of the prior.
inline constexpr size_t kBestOfPrior = 5;

// One configuration to try.
struct ProbeCandidate {
  CollectiveConfig config;
  double predicted = 1;  // time over the time of NCCL's choice
};

// Returns the candidates, best first. `policy` may be null: then the cost model counts alone. `best_of_model`
// is how many of the cost model's own best are added. Jobs pass 0: with three more candidates their guard did
// not finish its search.
std::vector<ProbeCandidate> ProbeCandidates(const Policy* policy, const CostModelInput& input,
                                            const ConfigQuestion& question, size_t best_of_model = 0);

// Returns every configuration that the communicator can use and the cost model can price, NCCL's choice left
// out, in the order in which a job should look at them. Pairs of algorithm and protocol whose best price is
// over twice that of NCCL's choice are left out: what makes a fabric odd changes which channels are good,
// hardly what a protocol for small messages costs large ones. For each pair of algorithm and protocol, the
// cheapest pairs first, one channel and the number with the best price; then half of NCCL's channels; then
// the rest by price. Predictions know nothing of an odd fabric, but configurations that are unlike each other
// meet it in different ways.
std::vector<ProbeCandidate> UnlikeFirst(const Policy* policy, const CostModelInput& input,
                                        const ConfigQuestion& question);

// Returns how much what is known of one configuration says about another, at most 1: most where only the
// number of channels differs, and little.
double Kinship(const CollectiveConfig& a, const CollectiveConfig& b);

// Holds the time that a configuration was measured to take, over the time of NCCL's choice.
struct TriedConfig {
  CollectiveConfig config;
  double ratio = 1;
};

// Returns what to try next when all of `tried` have been measured; best first, at most `most`. A measurement
// also corrects the prediction of similar configurations, most of all those of the same algorithm and
// protocol with a similar number of channels. Candidates are those whose corrected prediction is at most
// twice the time of what is in use, because predictions are off by as much. `in_use` is that time over the
// time of NCCL's choice. Neither NCCL's choice nor what was tried is among them. The evaluation's search uses
// it; jobs end theirs with the candidates above.
std::vector<ProbeCandidate> FurtherCandidates(const Policy* policy, const CostModelInput& input,
                                              const ConfigQuestion& question,
                                              const std::vector<TriedConfig>& tried, double in_use,
                                              size_t most);

}  // namespace dynamiccl
