// SPDX-License-Identifier: Apache-2.0
// Finds the parts of an arena that belong to whole or to sliced parameters. The sum over whole parameters is
// packed into one AllReduce.
#include "zero_workloads/zero/whole_parameters.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

namespace dynamiccl::zero {
namespace {

// The label that the sum over whole parameters has in traces.
constexpr CallLabel kLabel{DYNAMICCL_PHASE_BACKWARD, DYNAMICCL_ROLE_GRADIENT_REDUCE};

}  // namespace

std::vector<ArenaRun> ArenaRuns(const std::deque<FlatParameters>& units, const Partition& partition,
                                int64_t rank, bool sliced) {
  std::vector<ArenaRun> runs;
  for (int unit = 0; unit < partition.units(); ++unit) {
    const Shard shard = partition.shard(unit, rank);
    const FlatParameters& parameters = units[static_cast<size_t>(unit)];
    const int64_t to_arena = shard.arena_offset - shard.begin;
    parameters.ForEachParameter(shard.begin, shard.begin + shard.elements,
                                [&](size_t i, int64_t first, int64_t last) {
                                  if (parameters.unit().parameters[i].sliced() != sliced) return;
                                  runs.push_back({parameters.offset(i) + first + to_arena, last - first});
                                });
  }
  return runs;
}

void SumWholeParameters(const at::Tensor& gradients, const std::vector<std::vector<ArenaRun>>& runs,
                        ProcessGroup* group) {
  std::vector<at::Tensor> parts;
  const at::Tensor arenas = gradients.view({static_cast<int64_t>(runs.size()), -1});
  for (size_t arena = 0; arena < runs.size(); ++arena) {
    for (const auto [begin, length] : runs[arena]) {
      parts.push_back(arenas.select(0, static_cast<int64_t>(arena)).narrow(0, begin, length));
    }
  }
  // If nothing is to be summed, all ranks of the tensor group return here, since their arenas have the same
  // layout.
  if (parts.empty()) return;
  const at::Tensor sum = at::cat(parts);
  group->Await(group->AllReduce(sum, kLabel));
  int64_t position = 0;
  for (const at::Tensor& part : parts) {
    part.copy_(sum.narrow(0, position, part.numel()));
    position += part.numel();
  }
}

at::Tensor SquaredNormShare(const at::Tensor& arena, const std::vector<ArenaRun>& sliced,
                            const TensorSplit& split) {
  if (split.rank() == 0) return arena.square().sum();
  at::Tensor sum = at::zeros({}, arena.options());
  for (const auto [begin, length] : sliced) sum.add_(arena.narrow(0, begin, length).square().sum());
  return sum;
}

}  // namespace dynamiccl::zero
