// SPDX-License-Identifier: Apache-2.0
// The boosted trees of the config agent: comparisons and sums of integers, so that every machine computes the
// same bits. policy.h has the layout of the trees.
#pragma once

#include "src/policy/config_features.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// The trees' prediction of log2(time / the cost model's cost), with 16 fraction bits; 0 in a policy without
// trees. It takes about 1 us. Any thread.
int32_t PredictTreeResidual(const PolicyTensors& tensors, const ConfigInputs& inputs);

}  // namespace dynamiccl
