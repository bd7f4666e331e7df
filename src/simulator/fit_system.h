// SPDX-License-Identifier: Apache-2.0
// Fits a system to measured times. First the constants of each path are fitted by Huber's loss on the
// logarithm of the time, from several starts; then what remains becomes residuals.
//
//   constant = (NCCL's own) * (one factor for all paths of this kind) * (a factor of this path's own)
//
// The factors of kinds are free. A path's own factors are pulled to 1, so that with few measurements the
// paths keep the relation that NCCL gives them. For an algorithm whose protocol is not known LL and Simple
// are fitted; for a time whose algorithm is not known, Ring and Tree with both. The cheapest is then taken
// for what the library ran.
#pragma once

#include <span>
#include <string>

#include "src/base/status.h"
#include "src/simulator/system.h"
#include "src/simulator/timed_cell.h"

namespace dynamiccl {

// Says how long to search. Equal options give equal systems.
struct FitOptions {
  uint64_t seed = 1;
  int starts = 4;  // the first one from NCCL's relations, the others at random around them
  int iterations = 150;
};

// Ranks of a node as the measurements have it: the most of any cell; 1 without cells.
int RanksPerNode(std::span<const TimedCell> cells);

// States in `system`, which FitSystem made of these cells, how far predictions are off at each rank count: a
// system fitted to the other rank counts predicts it. States nothing with fewer than three rank counts, and
// nothing for a rank count without which it is not known how many ranks a node has.
Status StateErrors(System& system, std::span<const TimedCell> cells, const FitOptions& options);

// The result is determined by the seed. Cells whose ranks do not fill their nodes count for the constants
// only. kInvalidArgument for a cell without a time above 0 or with a configuration that has no formula.
Result<System> FitSystem(const std::string& name, std::span<const TimedCell> cells,
                         const FitOptions& options);

// Returns whether the cell's ranks fill their nodes as those of `system` do.
bool FillsNodes(const System& system, const TimedCell& cell);

// The second half of the fit: replaces the residuals of `system` by those of the cells whose ranks fill their
// nodes. It also finds from which number of bytes a rank cliffs drift, by leaving out one rank count after
// the other.
void FitResiduals(System& system, std::span<const TimedCell> cells);

// This file says what a path costs before anything was measured: the relations from which fits start and to
// which they fall back.

// Microseconds and GB/s in the relations of NCCL's own tables (2.30.7, src/graph/tuning.cc): base latencies,
// latencies of NVLink and network hops, and the shares of the bus that LL, LL128 and trees reach. They are
// stated for a node of 200 GB/s and a network of 20 GB/s; a fit first multiplies all constants of a kind by
// one factor. CollNet is not known.
PathCosts PriorCosts(Algorithm algorithm, Protocol protocol);

}  // namespace dynamiccl
