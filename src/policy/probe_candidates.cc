// SPDX-License-Identifier: Apache-2.0
#include "src/policy/probe_candidates.h"

#include <algorithm>
#include <cmath>

#include "src/policy/config_inference.h"

namespace dynamiccl {
namespace {

struct Priced {
  CollectiveConfig config;
  double by_model = 0;  // log2 of NCCL's cost model
  double believed = 0;  // the same, corrected by the policy
  bool worth_trying = false;
};

// Outside of what training saw the policy is not asked.
Priced PriceOf(const Policy* policy, const ConfigContext& context, const ConfigAction& action) {
  const double prior = action.prior / 65536.0;
  const Priced uncorrected{action.config, prior, prior};
  if (policy == nullptr) return uncorrected;
  const ConfigInputs inputs = context.Features(action);
  if (OutsideDomain(policy->tensors, inputs, 0, kConfigFeatures) >= 0) return uncorrected;
  return {action.config, prior, prior + MeanResidual(policy->tensors, inputs) / 65536.0};
}

bool IsNeighbour(const CollectiveConfig& config, const CollectiveConfig& best) {
  if (config.algorithm != best.algorithm || config.protocol != best.protocol) return false;
  return config.channels == best.channels * 2 || config.channels * 2 == best.channels;
}

// By which of the two beliefs.
using Belief = double Priced::*;

// The best `count` by `belief` are worth trying; `priced` is left in that order, the first of equals first.
void TakeBest(size_t count, Belief belief, std::vector<Priced>& priced) {
  std::stable_sort(priced.begin(), priced.end(),
                   [belief](const Priced& a, const Priced& b) { return a.*belief < b.*belief; });
  for (size_t i = 0; i < std::min(count, priced.size()); ++i) priced[i].worth_trying = true;
}

}  // namespace

std::vector<ProbeCandidate> ProbeCandidates(const Policy* policy, const CostModelInput& input,
                                            const ConfigQuestion& question, size_t best_of_model) {
  const ConfigContext context(input, question);
  const ConfigAction by_default = context.Price(context.default_config());
  if (by_default.prior <= 0) return {};
  const double default_cost = PriceOf(policy, context, by_default).believed;
  std::vector<Priced> priced;
  for (const ConfigAction& action : context.Actions()) {
    if (action.config != by_default.config) priced.push_back(PriceOf(policy, context, action));
  }
  TakeBest(best_of_model, &Priced::by_model, priced);
  TakeBest(kBestOfPrior, &Priced::believed, priced);
  std::vector<ProbeCandidate> candidates;
  for (const Priced& one : priced) {
    if (one.worth_trying || IsNeighbour(one.config, priced[0].config))
      candidates.push_back({one.config, std::exp2(one.believed - default_cost)});
  }
  return candidates;
}

}  // namespace dynamiccl
