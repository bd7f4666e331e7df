// SPDX-License-Identifier: Apache-2.0
// Computes three networks with two hidden layers and one output each, in int16 with int32 sums, and then
// applies the gate: an action is chosen only if every network and the trees promise the gain.
#include "src/policy/config_inference.h"

#include <algorithm>
#include <cmath>

#include "src/policy/small_network.h"

namespace dynamiccl {
namespace {

// Residuals are below 2^27 and priors below 2^23 in magnitude, so sums of three fit in int32.
int32_t MeanOf(const Residuals& residuals) {
  return (residuals[0] + residuals[1] + residuals[2]) / kEnsemble;
}

int32_t MeanOf(const PolicyTensors& tensors, const Residuals& residuals, int32_t trees) {
  return tensors.trees.count == 0 ? MeanOf(residuals) : (MeanOf(residuals) + trees) / 2;
}

// The predictions for one action.
struct Prediction {
  int32_t prior = 0;
  Residuals residuals{};
  int32_t trees = 0;  // the trees' residual; only set if all networks promise the gain
};

// Returns true if all networks and the trees promise the gate's gain. The trees' residual of `action` is
// computed only if all networks promise the gain.
bool AllPromise(const PolicyTensors& tensors, const ConfigInputs& inputs, const Prediction& default_choice,
                Prediction& action) {
  const int32_t by_prior = default_choice.prior - action.prior;
  const int32_t gate = tensors.config.gate;
  for (size_t i = 0; i < kEnsemble; ++i) {
    if (by_prior + default_choice.residuals[i] - action.residuals[i] < gate) return false;
  }
  action.trees = PredictTreeResidual(tensors, inputs);
  return tensors.trees.count == 0 || by_prior + default_choice.trees - action.trees >= gate;
}

}  // namespace

double ConfigChoice::predicted_microseconds() const {
  return std::exp2(predicted_log2 / 65536.0) * 1e-6;
}
double ConfigChoice::predicted_speed_up() const {
  return std::exp2(predicted_gain / 65536.0);
}

Residuals PredictResiduals(const PolicyTensors& tensors, const ConfigInputs& inputs) {
  Residuals residuals;
  for (int network = 0; network < kEnsemble; ++network) {
    residuals[static_cast<size_t>(network)] = ConfigNetworkOf(tensors, network).Output(inputs.data());
  }
  return residuals;
}

int32_t MeanResidual(const PolicyTensors& tensors, const ConfigInputs& inputs) {
  return MeanOf(tensors, PredictResiduals(tensors, inputs), PredictTreeResidual(tensors, inputs));
}

int OutsideDomain(const PolicyTensors& tensors, const ConfigInputs& inputs, int first, int last) {
  for (int i = first; i < last; ++i) {
    if (inputs[static_cast<size_t>(i)] < tensors.domain_min[i]) return i;
    if (inputs[static_cast<size_t>(i)] > tensors.domain_max[i]) return i;
  }
  return -1;
}

ConfigChoice ChooseConfig(const Policy& policy, const CostModelInput& input, const ConfigQuestion& question) {
  const PolicyTensors& tensors = policy.tensors;
  const auto by_integers = [&](const ConfigInputs& inputs) { return PredictResiduals(tensors, inputs); };
  return ChooseConfigBy(tensors, by_integers, input, question);
}

ConfigChoice ChooseConfigBy(const PolicyTensors& tensors, const ResidualsOf& residuals_of,
                            const CostModelInput& input, const ConfigQuestion& question) {
  const ConfigContext context(input, question);
  ConfigChoice choice;
  choice.default_config = context.default_config();
  const ConfigAction default_action = context.Price(choice.default_config);
  if (default_action.prior <= 0) return choice;
  choice.reason = ChoiceReason::kOutsideTraining;
  const ConfigInputs default_inputs = context.Features(default_action);
  if (OutsideDomain(tensors, default_inputs, 0, kConfigFeatures) >= 0) return choice;

  const Prediction by_default{default_action.prior, residuals_of(default_inputs),
                              PredictTreeResidual(tensors, default_inputs)};
  const int32_t default_log2 = by_default.prior + MeanOf(tensors, by_default.residuals, by_default.trees);
  choice.reason = ChoiceReason::kNoPromise;
  choice.predicted_log2 = default_log2;
  for (const ConfigAction& action : context.Actions()) {
    const ConfigInputs inputs = context.Features(action);
    if (OutsideDomain(tensors, inputs, kContextFeatures, kConfigFeatures) >= 0) continue;
    Prediction prediction{action.prior, residuals_of(inputs), 0};
    if (!AllPromise(tensors, inputs, by_default, prediction)) continue;
    const int32_t log2 = action.prior + MeanOf(tensors, prediction.residuals, prediction.trees);
    if (log2 >= choice.predicted_log2) continue;
    choice.config = action.config;
    choice.reason = ChoiceReason::kPromised;
    choice.predicted_log2 = log2;
  }
  choice.predicted_gain = default_log2 - choice.predicted_log2;
  return choice;
}

// Walks every tree from its root to a leaf and adds up the leaves. Trees are complete binary trees in an
// array: the children of node i are 2i + 1 and 2i + 2, and the leaves follow the inner nodes.
int32_t PredictTreeResidual(const PolicyTensors& tensors, const ConfigInputs& inputs) {
  int32_t sum = tensors.trees.base;
  for (int tree = 0; tree < tensors.trees.count; ++tree) {
    int node = 0;
    for (int level = 0; level < kTreeDepth; ++level) {
      const int16_t* split = tensors.tree_nodes[tree][node];
      node = 2 * node + 1 + (inputs[static_cast<size_t>(split[0])] >= split[1]);
    }
    sum += tensors.tree_leaves[tree][node - kTreeNodes];
  }
  return sum;
}

}  // namespace dynamiccl
