// SPDX-License-Identifier: Apache-2.0
// The boosted trees of the config agent: comparisons and sums of integers, so that every machine computes the
// same bits.
#pragma once

#include "src/policy/config_features.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// log2(time / cost model's cost) as the trees see it, 16 fraction bits; 0 in a policy without trees. About
// 1 us.
int32_t PredictTreeResidual(const PolicyTensors& tensors, const ConfigInputs& inputs);

}  // namespace dynamiccl
