// SPDX-License-Identifier: Apache-2.0
// Decides which cells (a config for one collective and size) a sweep measures next. The functions are pure:
// the answer depends only on what was measured so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/bench/cell_surrogate.h"

namespace dynamiccl {

// kRounds times every cell (a config for one collective and size) once per round. The other orders measure
// one cell after the other until the time is spent: the cell with the greatest expected gain, a random one,
// or the next in the list.
enum class SweepOrder { kRounds, kActive, kRandom, kGrid };
// "rounds", "active", "random" or "grid"; nothing for any other name.
std::optional<SweepOrder> ParseSweepOrder(std::string_view name);

// Number of samples that one visit takes of a cell. Two, because readers of the file split the repeats into
// halves.
inline constexpr int kVisitRepeats = 2;

// Options for the choice of the next cells.
struct ChoiceOptions {
  SweepOrder order = SweepOrder::kActive;
  // Seed of the order kRandom, and of the random draws of a rehearsal (rehearsed_sweep.h).
  uint64_t seed = 1;
  // A cell that was timed this often is done.
  int repeats = 12;
};

// The cells (a config for one collective and size) to measure before the next choice.
struct NextCells {
  // Indices of the cells in the order of measuring; empty: every cell is done.
  std::vector<size_t> cells;
  // Says how much a second spent on the first of `cells` is expected to lower the regret of its collective
  // and size, in octaves of time. 0 for orders that expect nothing.
  double promise = 0;
};

// Returns the cells (a config for one collective and size) to measure next. `samples[i]` are the times of
// cell i in microseconds, so far.
//
// kActive prefers the cell whose measurement is expected to lower the regret of its key (collective and size)
// the most for each second. The expected fall is the knowledge gradient (Frazier, Powell and Dayanik 2009)
// for two alternatives with correlated beliefs: the cell and the best of the other cells. At most one cell of
// each key is chosen, and no more than an eighth of the measured cells, since each choice costs a fit of the
// model. The default of a key is measured before its first other cell, because readers compare with the
// default.
NextCells ChooseNext(const std::vector<PricedCell>& cells, const std::vector<std::vector<float>>& samples,
                     const ChoiceOptions& options);

// Expected seconds of one visit (kVisitRepeats samples) to a cell whose call takes `call_us` microseconds.
// The first visit also makes the connections.
double VisitSeconds(double call_us, bool first);

// Microseconds of one sample in a sweep, and milliseconds of the copy-rate probe before and after it. A
// sample is long compared with a clock read and a wake-up, and short enough that no other process takes the
// core in most samples. The median of many short samples withstands noise better than a few long ones.
inline constexpr double kSampleUs = 600;
inline constexpr double kProbeMilliseconds = 1;

}  // namespace dynamiccl
