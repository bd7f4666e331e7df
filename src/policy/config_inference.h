// SPDX-License-Identifier: Apache-2.0
// The config agent. It decides which algorithm, protocol and number of channels a call should use, or that
// NCCL's own choice should stay. It is a pure function of values that are equal on all ranks, computed in
// integers. Any thread may call its functions.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "src/policy/config_features.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// Predictions of log2(time / the cost model's cost), one for each network, with 16 fraction bits.
using Residuals = std::array<int32_t, kEnsemble>;
Residuals PredictResiduals(const PolicyTensors& tensors, const ConfigInputs& inputs);
// Returns the prediction that is used: the mean of the networks' mean and the trees, or the networks' mean
// alone in a policy without trees.
int32_t MeanResidual(const PolicyTensors& tensors, const ConfigInputs& inputs);

// The reason for the agent's choice. Reports show it.
enum class ChoiceReason : uint8_t {
  kPromised,         // every network and the trees promise the gate's gain over NCCL's choice
  kNoPromise,        // no configuration is promised by all: NCCL is left alone
  kOutsideTraining,  // the call or the fabric lies outside what training saw: NCCL is left alone
  kNothingKnown,     // the cost model cannot price the call: NCCL is left alone
};

// The agent's answer.
struct ConfigChoice {
  CollectiveConfig config;  // kLeaveNcclAlone unless the reason is kPromised
  ChoiceReason reason = ChoiceReason::kNothingKnown;
  CollectiveConfig default_config;  // what NCCL is expected to use
  int32_t predicted_gain = 0;       // log2(default's time / time) by MeanResidual, 16 fraction bits; 0: none
  int32_t predicted_log2 = 0;       // log2 of the predicted picoseconds, 16 fraction bits

  double predicted_microseconds() const;
  double predicted_speed_up() const;  // 1.05: 5 % faster than NCCL's choice
};

// Chooses among the actions for which every network and the trees promise at least the policy's gate as gain
// over NCCL's choice. The action with the least predicted time wins, the first of equals. The trees are
// evaluated only if all networks promise the gain. This function takes some 10 us. It is called once for each
// key and not for every collective call.
ConfigChoice ChooseConfig(const Policy& policy, const CostModelInput& input, const ConfigQuestion& question);

// Chooses in the same way, but the caller computes the networks' residuals. An exporter uses this to compare
// its floating-point networks with the integer ones.
using ResidualsOf = std::function<Residuals(const ConfigInputs&)>;
ConfigChoice ChooseConfigBy(const PolicyTensors& tensors, const ResidualsOf& residuals_of,
                            const CostModelInput& input, const ConfigQuestion& question);

// Returns the first of the features [first, last) that lies outside the range seen in training, or -1.
int OutsideDomain(const PolicyTensors& tensors, const ConfigInputs& inputs, int first, int last);

// The boosted trees of the config agent: comparisons and sums of integers, so that every machine computes the
// same bits. policy.h has the layout of the trees.

// Returns the trees' prediction of log2(time / the cost model's cost), with 16 fraction bits; 0 in a policy
// without trees. It takes about 1 us. Any thread.
int32_t PredictTreeResidual(const PolicyTensors& tensors, const ConfigInputs& inputs);

}  // namespace dynamiccl
