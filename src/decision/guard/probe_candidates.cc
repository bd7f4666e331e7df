// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/probe_candidates.h"

#include <algorithm>
#include <cmath>

#include "src/policy/config_inference.h"

namespace dynamiccl {
namespace {

struct Priced {
  CollectiveConfig config;
  double log2_cost = 0;
};

// Outside of what training saw the policy is not asked.
double Log2CostOf(const Policy* policy, const ConfigContext& context, const ConfigAction& action) {
  const double prior = action.prior / 65536.0;
  if (policy == nullptr) return prior;
  const ConfigInputs inputs = context.Features(action);
  if (OutsideDomain(policy->tensors, inputs, 0, kConfigFeatures) >= 0) return prior;
  return prior + MeanResidual(policy->tensors, inputs) / 65536.0;
}

bool IsNeighbour(const CollectiveConfig& config, const CollectiveConfig& best) {
  if (config.algorithm != best.algorithm || config.protocol != best.protocol) return false;
  return config.channels == best.channels * 2 || config.channels * 2 == best.channels;
}

}  // namespace

std::vector<ProbeCandidate> ProbeCandidates(const Policy* policy, const CostModelInput& input,
                                            const ConfigQuestion& question) {
  const ConfigContext context(input, question);
  const ConfigAction by_default = context.Price(context.default_config());
  if (by_default.prior <= 0) return {};
  const double default_cost = Log2CostOf(policy, context, by_default);
  std::vector<Priced> priced;
  for (const ConfigAction& action : context.Actions()) {
    if (action.config == by_default.config) continue;
    priced.push_back({action.config, Log2CostOf(policy, context, action)});
  }
  std::stable_sort(priced.begin(), priced.end(),
                   [](const Priced& a, const Priced& b) { return a.log2_cost < b.log2_cost; });
  std::vector<ProbeCandidate> candidates;
  for (size_t i = 0; i < priced.size(); ++i) {
    if (i >= kBestOfPrior && !IsNeighbour(priced[i].config, priced[0].config)) continue;
    candidates.push_back({priced[i].config, std::exp2(priced[i].log2_cost - default_cost)});
  }
  return candidates;
}

}  // namespace dynamiccl
