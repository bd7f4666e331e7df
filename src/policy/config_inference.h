// SPDX-License-Identifier: Apache-2.0
// The config agent: which algorithm, protocol and channels a call should use, or that NCCL should be left
// alone. A pure function of values equal on all ranks, in integers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "src/policy/config_features.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// log2(time / cost model's cost) as each network sees it, 16 fraction bits.
using Residuals = std::array<int32_t, kEnsemble>;
Residuals PredictResiduals(const PolicyTensors& tensors, const ConfigInputs& inputs);
// What is believed: the mean of the networks' mean and the trees; of the networks alone in a policy without
// trees.
int32_t MeanResidual(const PolicyTensors& tensors, const ConfigInputs& inputs);

// Why a choice is what it is.
enum class ChoiceReason : uint8_t {
  kPromised,         // every network and the trees promise the gate's gain over NCCL's choice
  kNoPromise,        // none of the configs is promised by all: NCCL is left alone
  kOutsideTraining,  // the call or the fabric is outside of what training saw: likewise
  kNothingKnown,     // the cost model cannot price the call: likewise
};

struct ConfigChoice {
  CollectiveConfig config;  // kLeaveNcclAlone unless kPromised
  ChoiceReason reason = ChoiceReason::kNothingKnown;
  CollectiveConfig default_config;  // what NCCL is expected to use
  int32_t predicted_gain = 0;  // log2(default's time / time), as MeanResidual, 16 fraction bits; 0 = none
  int32_t predicted_log2 = 0;  // log2 of the predicted picoseconds, 16 fraction bits

  double predicted_microseconds() const;
  double predicted_speed_up() const;  // 1.05 = 5 % faster than NCCL's choice
};

// Among the actions that every network and the trees promise to be better than NCCL's choice by the policy's
// gate, the one of least mean predicted time; the first of equals. The trees are asked only about what
// all networks promise. Some 10 us: once a key, off the hot path.
ConfigChoice ChooseConfig(const Policy& policy, const CostModelInput& input, const ConfigQuestion& question);

// The same with the networks' residuals from elsewhere: an exporter compares its floats with the integers.
using ResidualsOf = std::function<Residuals(const ConfigInputs&)>;
ConfigChoice ChooseConfigBy(const PolicyTensors& tensors, const ResidualsOf& residuals_of,
                            const CostModelInput& input, const ConfigQuestion& question);

// The first of the features [first, last) that is outside of the training's box, or -1.
int OutsideDomain(const PolicyTensors& tensors, const ConfigInputs& inputs, int first, int last);

}  // namespace dynamiccl
