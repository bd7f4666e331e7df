// SPDX-License-Identifier: Apache-2.0
// Each rank evaluates its share of the windows without gradients, and one AllReduce sums the losses in fp64.
#include "zero_workloads/evaluation.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <numbers>

#include "zero_workloads/data/batch_loader.h"

namespace dynamiccl::zero {

double BitsPerByte(const Gpt& model, UnitHooks* hooks, ProcessGroup* group, std::span<const uint8_t> text,
                   const EvaluationShape& shape) {
  const c10::NoGradGuard no_gradients;
  const int64_t windows = (static_cast<int64_t>(text.size()) - 2) / shape.sequence + 1;
  const int64_t windows_at_a_time = shape.rows * group->world();
  const at::Tensor nats = at::zeros({1}, at::TensorOptions().dtype(at::kDouble).device(shape.device));
  // Every rank runs the same number of forward passes, since stage 3 gathers parameters in each. Windows
  // after the end of the text do not count.
  for (int64_t first = 0; first < windows; first += windows_at_a_time) {
    const Batch batch =
        ConsecutiveBatch(text, shape.sequence, first + group->rank() * shape.rows, shape.rows, shape.device);
    nats.add_(model.LossPerToken(batch.tokens, batch.targets, hooks).to(at::kDouble).sum());
  }
  group->AwaitOnHost(group->AllReduce(nats, {DYNAMICCL_PHASE_OTHER, DYNAMICCL_ROLE_SCALAR}));
  return nats.item<double>() / std::numbers::ln2 / static_cast<double>(text.size() - 1);
}

}  // namespace dynamiccl::zero
