// SPDX-License-Identifier: Apache-2.0
// Lists the cells that a sweep measures, and computes the lengths of samples and sweeps.
#include "tools/bench/sweep_plan.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

// Bytes of one element. Sweeps measure in float32.
constexpr uint64_t kElementBytes = 4;

// Rounds `bytes` down so that every rank has a whole number of elements.
uint64_t WholeElements(Collective collective, uint64_t bytes, int n_ranks) {
  const bool per_rank = collective == Collective::kAllGather || collective == Collective::kReduceScatter;
  const uint64_t unit = kElementBytes * (per_rank ? static_cast<uint64_t>(n_ranks) : 1);
  return bytes / unit * unit;
}

// The sizes that the scope asks for, rounded for one collective, without duplicates.
std::vector<uint64_t> SizesFor(const SweepScope& scope, Collective collective) {
  std::vector<uint64_t> sizes;
  for (const uint64_t bytes : scope.sizes) {
    const uint64_t whole = WholeElements(collective, bytes, scope.n_ranks);
    if (whole > 0 && std::find(sizes.begin(), sizes.end(), whole) == sizes.end()) sizes.push_back(whole);
  }
  return sizes;
}

bool SameGroup(const PlannedCell& a, const PlannedCell& b) {
  return a.collective == b.collective && a.bytes == b.bytes;
}

}  // namespace

std::vector<PlannedCell> PlanSweep(const SweepScope& scope) {
  std::vector<PlannedCell> cells;
  for (const Collective collective : scope.collectives) {
    for (const uint64_t bytes : SizesFor(scope, collective)) {
      cells.push_back({collective, bytes, kLeaveNcclAlone});
      for (const CollectiveConfig& config :
           EnumerateConfigs(scope.allowed(collective, bytes), scope.max_channels)) {
        cells.push_back({collective, bytes, config});
      }
    }
  }
  return cells;
}

int IterationsFor(double call_us, double target_us) {
  constexpr int kMax = 32;
  return std::clamp(static_cast<int>(std::ceil(target_us / std::max(call_us, 0.1))), 1, kMax);
}

int RepeatsWithin(double budget_us, double round_us, int wanted) {
  const double fitting = budget_us / std::max(round_us, 1.0);
  return std::clamp(static_cast<int>(std::min(fitting, 1e6)), std::min(2, wanted), wanted);
}

size_t GroupEnd(const std::vector<PlannedCell>& cells, size_t position) {
  size_t end = position + 1;
  while (end < cells.size() && SameGroup(cells[end], cells[position])) ++end;
  return end;
}

size_t RotatedIndex(const std::vector<PlannedCell>& cells, size_t position, int round) {
  size_t begin = position;
  while (begin > 0 && SameGroup(cells[begin - 1], cells[position])) --begin;
  const size_t end = GroupEnd(cells, position);
  return begin + (position - begin + static_cast<size_t>(round)) % (end - begin);
}

}  // namespace dynamiccl
