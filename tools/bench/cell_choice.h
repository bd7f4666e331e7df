// SPDX-License-Identifier: Apache-2.0
// Which cells a sweep measures next: pure functions of what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/bench/cell_surrogate.h"

namespace dynamiccl {

// kRounds measures everything in rounds; the others visit one cell after the other until the budget is spent.
enum class SweepOrder { kRounds, kActive, kRandom, kGrid };
std::optional<SweepOrder> ParseSweepOrder(std::string_view name);

// Repeats that a visit of a cell takes: with fewer, readers could not split them into halves.
inline constexpr int kVisitRepeats = 2;

struct ChoiceOptions {
  SweepOrder order = SweepOrder::kActive;
  uint64_t seed = 1;  // of kRandom, and of what a rehearsal draws
  int repeats = 12;   // a cell that has so many is done
};

struct NextCells {
  std::vector<size_t> cells;  // in order; empty: every cell is done
  // Of the first: the regret of its key, in octaves of time, that a second of measuring it is expected to
  // take away; 0 for orders that expect nothing.
  double promise = 0;
};

// kActive: the visit with the greatest expected fall of the key's regret for its seconds (the knowledge
// gradient of Frazier, Powell and Dayanik 2009 for two alternatives with correlated beliefs: the cell and the
// best of the rest), at most one a key, and as many as an eighth of what was measured, since each choice
// costs a fit. The key's default comes before the first other cell of a key, for readers judge by it.
NextCells ChooseNext(const std::vector<PricedCell>& cells, const std::vector<std::vector<float>>& samples,
                     const ChoiceOptions& options);

// Seconds of a visit of a cell whose call takes `call_us`; a first visit also makes connections.
double VisitSeconds(double call_us, bool first);

// How long a sample of a sweep is, and the probe of the machine beside it.

// Long against a clock read and a wake-up, short enough that in most samples no other process takes a core.
// Many short samples and a median stand noise better than few long ones.
inline constexpr double kSampleUs = 600;
inline constexpr double kProbeMilliseconds = 1;

}  // namespace dynamiccl
