// SPDX-License-Identifier: Apache-2.0
#include "agents/evaluation/policy_choosers.h"

#include <limits>
#include <memory>

#include "src/policy/config_inference.h"

namespace dynamiccl::agents {
namespace {

// Returns the measured configuration with the smallest predicted time. Configurations outside of the
// training's domain are left out. If none is left, the choice is left to NCCL.
template <typename Residual>
CollectiveConfig LeastPredicted(const Policy& policy, const SweptKey& key, Residual residual_of) {
  const ConfigContext context(key.model, QuestionOfJobs(key.question));
  CollectiveConfig best = kLeaveNcclAlone;
  double least = std::numeric_limits<double>::infinity();
  for (const SweptConfig& swept : key.configs) {
    const ConfigAction action = context.Price(swept.config);
    const ConfigInputs inputs = context.Features(action);
    if (action.prior <= 0 || OutsideDomain(policy.tensors, inputs, 0, kConfigFeatures) >= 0) continue;
    const double log2 = action.prior + residual_of(inputs);
    if (log2 >= least) continue;
    least = log2;
    best = swept.config;
  }
  return best;
}

}  // namespace

Chooser PolicyChooser(const Policy& policy) {
  return {"policy", [&policy](const SweptKey& key) {
            return ChooseConfig(policy, key.model, QuestionOfJobs(key.question)).config;
          }};
}

std::vector<Chooser> PolicyChoosers(const Policy& policy) {
  const auto ungated = std::make_shared<Policy>(policy);
  ungated->tensors.config.gate = std::numeric_limits<int32_t>::min();
  const auto networks = std::make_shared<Policy>(policy);
  networks->tensors.trees = {};
  return {PolicyChooser(policy),
          {"networks, gated",
           [networks](const SweptKey& key) {
             return ChooseConfig(*networks, key.model, QuestionOfJobs(key.question)).config;
           }},
          {"policy without gate",
           [ungated](const SweptKey& key) {
             return ChooseConfig(*ungated, key.model, QuestionOfJobs(key.question)).config;
           }},
          {"networks, no gate",
           [networks](const SweptKey& key) {
             return LeastPredicted(*networks, key, [&](const ConfigInputs& inputs) {
               return MeanResidual(networks->tensors, inputs);
             });
           }},
          {"trees, no gate", [&policy](const SweptKey& key) {
             return LeastPredicted(policy, key, [&](const ConfigInputs& inputs) {
               return PredictTreeResidual(policy.tensors, inputs);
             });
           }}};
}

}  // namespace dynamiccl::agents
