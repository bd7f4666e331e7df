// SPDX-License-Identifier: Apache-2.0
// Computes the result of a collective in the slow and obvious way, in double precision. This is exact for the
// small integers that the tests use as data, in any order of the sum.
#pragma once

#include <algorithm>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/reduce_op.h"

namespace dynamiccl::testing {

using Values = std::vector<double>;

inline double Reduce(ReduceOp op, double a, double b) {
  return op == ReduceOp::kProd  ? a * b
         : op == ReduceOp::kMax ? std::max(a, b)
         : op == ReduceOp::kMin ? std::min(a, b)
                                : a + b;
}

// Returns the element-wise reduction over all ranks. `inputs` are by rank, each as long as the call's send
// buffer.
inline Values ReduceAll(ReduceOp op, const std::vector<Values>& inputs) {
  Values result = inputs[0];
  for (size_t r = 1; r < inputs.size(); ++r)
    for (size_t i = 0; i < result.size(); ++i) result[i] = Reduce(op, result[i], inputs[r][i]);
  if (op == ReduceOp::kAvg)
    for (double& value : result) value /= static_cast<double>(inputs.size());
  return result;
}

// Returns the receive buffer of `rank` after the call; empty if the call does not change it.
inline Values SerialReference(Collective collective, ReduceOp op, int root, const std::vector<Values>& inputs,
                              int rank) {
  const Values all = ReduceAll(op, inputs);
  const size_t count = all.size() / inputs.size();
  const auto mine = all.begin() + static_cast<std::ptrdiff_t>(count) * rank;
  Values gathered;
  for (const Values& input : inputs) gathered.insert(gathered.end(), input.begin(), input.end());
  switch (collective) {
    case Collective::kAllReduce:
      return all;
    case Collective::kReduce:
      return rank == root ? all : Values{};
    case Collective::kReduceScatter:
      return Values(mine, mine + static_cast<std::ptrdiff_t>(count));
    case Collective::kAllGather:
      return gathered;
    default:
      return inputs[static_cast<size_t>(root)];
  }
}

}  // namespace dynamiccl::testing
