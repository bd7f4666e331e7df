// SPDX-License-Identifier: Apache-2.0
// Decides which cells a sweep measures next: pure functions of what was measured so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/bench/cell_surrogate.h"

namespace dynamiccl {

// kRounds measures everything in rounds. The other orders visit one cell after the other until the budget is
// spent: by expected gain, at random, or in the order of the plan.
enum class SweepOrder { kRounds, kActive, kRandom, kGrid };
// "rounds", "active", "random" or "grid"; nothing for any other name.
std::optional<SweepOrder> ParseSweepOrder(std::string_view name);

// Repeats taken in one visit of a cell: readers split repeats into halves, which needs two.
inline constexpr int kVisitRepeats = 2;

// Inputs of a choice, in addition to the measurements.
struct ChoiceOptions {
  SweepOrder order = SweepOrder::kActive;
  // Seed of kRandom, and of the draws of a rehearsal.
  uint64_t seed = 1;
  // A cell with this many repeats is done.
  int repeats = 12;
};

// The visits to make before the next choice.
struct NextCells {
  // Indices in order; empty: every cell is done.
  std::vector<size_t> cells;
  // For the first cell: by how many octaves of time a second of measuring is expected to lower the regret of
  // its key. 0 for orders without an expectation.
  double promise = 0;
};

// `samples[i]` are the times of cell i in microseconds.
//
// kActive takes the visit with the greatest expected fall of its key's regret for each second. The fall is
// the knowledge gradient (Frazier, Powell and Dayanik 2009) for two alternatives with correlated beliefs: the
// cell and the best of the others. At most one cell of each key is chosen, and no more than an eighth of the
// measured cells, since each choice costs a fit. The key's default comes before the first other cell, because
// readers compare with it.
NextCells ChooseNext(const std::vector<PricedCell>& cells, const std::vector<std::vector<float>>& samples,
                     const ChoiceOptions& options);

// Expected seconds of a visit of a cell whose call takes `call_us`. A first visit also makes connections.
double VisitSeconds(double call_us, bool first);

// Length of one sample in a sweep in microseconds, and of the probe of the machine around it in milliseconds.
// A sample is long compared with a clock read and a wake-up, and short enough that no other process takes the
// core in most samples. Many short samples and a median stand noise better than a few long ones.
inline constexpr double kSampleUs = 600;
inline constexpr double kProbeMilliseconds = 1;

}  // namespace dynamiccl
