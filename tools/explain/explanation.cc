// SPDX-License-Identifier: Apache-2.0
// Asks the same functions as ChooseConfig (src/policy) and keeps every intermediate value.
#include "tools/explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/policy/config_inference.h"

namespace dynamiccl {
namespace {

// Meaning of each feature, in the order of the policy's inputs.
constexpr const char* kMeanings[] = {
#define DYNAMICCL_CONFIG_FEATURE(name, limit, meaning) meaning,
    DYNAMICCL_CONTEXT_FEATURES(DYNAMICCL_CONFIG_FEATURE) DYNAMICCL_ACTION_FEATURES(DYNAMICCL_CONFIG_FEATURE)
#undef DYNAMICCL_CONFIG_FEATURE
};

// Fixed-point unit of costs and residuals: 16 fraction bits.
constexpr double kOne = 65536;
// Fixed-point unit of features: 12 fraction bits.
constexpr double kFeatureOne = 4096;

double Microseconds(int32_t log2_picoseconds) {
  return std::exp2(log2_picoseconds / kOne) * 1e-6;
}

// Describes the first feature in [first, last) that lies outside of the training's range; empty: none.
std::string OutsideText(const Policy& policy, const ConfigInputs& inputs, int first, int last) {
  const int feature = OutsideDomain(policy.tensors, inputs, first, last);
  if (feature < 0) return "";
  return fmt::format("{} is {:.3f}, training saw {:.3f} to {:.3f}", kMeanings[feature],
                     inputs[static_cast<size_t>(feature)] / kFeatureOne,
                     policy.tensors.domain_min[feature] / kFeatureOne,
                     policy.tensors.domain_max[feature] / kFeatureOne);
}

// Holds what the parts of a policy predict for one config. `prior` is the estimate of NCCL's cost model as
// log2 of picoseconds, in fixed point. The residuals of the networks and of the trees are added to it.
struct Predictions {
  int32_t prior = 0;
  Residuals residuals{};
  int32_t trees = 0;
};

Predictions PredictionsFor(const PolicyTensors& tensors, const ConfigAction& action,
                           const ConfigInputs& inputs) {
  return {action.prior, PredictResiduals(tensors, inputs), PredictTreeResidual(tensors, inputs)};
}

// True if every network and the trees predict the gate's gain, by the rule of ChooseConfig.
bool AllPromise(const PolicyTensors& tensors, const Predictions& by_default, const Predictions& predicted) {
  const int32_t by_prior = by_default.prior - predicted.prior;
  for (size_t i = 0; i < kEnsemble; ++i) {
    if (by_prior + by_default.residuals[i] - predicted.residuals[i] < tensors.config.gate) return false;
  }
  return tensors.trees.count == 0 || by_prior + by_default.trees - predicted.trees >= tensors.config.gate;
}

ExplainedConfig ExplainConfig(const Policy& policy, const ConfigContext& context, const ConfigAction& action,
                              const Predictions& by_default) {
  const ConfigInputs inputs = context.Features(action);
  const Predictions predicted = PredictionsFor(policy.tensors, action, inputs);
  ExplainedConfig explained{.config = action.config, .estimate_us = Microseconds(action.prior)};
  explained.predicted_us = Microseconds(action.prior + MeanResidual(policy.tensors, inputs));
  for (size_t i = 0; i < kEnsemble; ++i)
    explained.networks_us[i] = Microseconds(action.prior + predicted.residuals[i]);
  if (policy.tensors.trees.count > 0) explained.trees_us = Microseconds(action.prior + predicted.trees);
  explained.outside = OutsideText(policy, inputs, kContextFeatures, kConfigFeatures);
  explained.promised = explained.outside.empty() && AllPromise(policy.tensors, by_default, predicted);
  return explained;
}

// Returns all configs. The default is added if its number of channels is not among the policy's actions.
std::vector<ConfigAction> ActionsAndDefault(const ConfigContext& context) {
  std::vector<ConfigAction> actions = context.Actions();
  const ConfigAction by_default = context.Price(context.default_config());
  const bool listed = std::any_of(actions.begin(), actions.end(), [&](const ConfigAction& action) {
    return action.config == by_default.config;
  });
  if (!listed) actions.push_back(by_default);
  return actions;
}

}  // namespace

Explanation Explain(const Policy& policy, const CostModelInput& fabric, const ConfigQuestion& question,
                    const OverrideRules* rules) {
  const ConfigQuestion asked = QuestionOfJobs(question);
  const ConfigContext context(fabric, asked);
  Explanation explanation{.default_config = context.default_config(),
                          .choice = ChooseConfig(policy, fabric, asked),
                          .gate_percent = 100 * (std::exp2(policy.tensors.config.gate / kOne) - 1)};
  if (rules != nullptr) {
    const OverrideRule* rule = rules->Match({.collective = question.collective,
                                             .bytes = question.bytes,
                                             .n_nodes = fabric.fabric.n_nodes,
                                             .n_ranks = fabric.fabric.n_ranks});
    if (rule != nullptr) explanation.rule = *rule;
  }
  const ConfigAction by_default = context.Price(explanation.default_config);
  if (by_default.prior <= 0) return explanation;
  const ConfigInputs default_inputs = context.Features(by_default);
  explanation.outside = OutsideText(policy, default_inputs, 0, kConfigFeatures);
  const Predictions default_predicted = PredictionsFor(policy.tensors, by_default, default_inputs);
  for (const ConfigAction& action : ActionsAndDefault(context))
    explanation.configs.push_back(ExplainConfig(policy, context, action, default_predicted));
  std::stable_sort(
      explanation.configs.begin(), explanation.configs.end(),
      [](const ExplainedConfig& a, const ExplainedConfig& b) { return a.predicted_us < b.predicted_us; });
  return explanation;
}

MeasurementContext AssumedFabric(int n_ranks, int n_nodes) {
  CostModelInput model;
  model.fabric = {
      .n_ranks = n_ranks, .n_nodes = n_nodes, .max_channels = 8, .intra = {1, 150}, .inter = {4, 50}};
  model.constants = NcclHopperConstants(2);
  return {fmt::format("{} nodes x {} (NVLink, InfiniBand)", n_nodes, n_ranks / n_nodes), model};
}

}  // namespace dynamiccl
