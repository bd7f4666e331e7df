// SPDX-License-Identifier: Apache-2.0
// Fits a system to measured times: constants of each path by Huber's loss on the logarithm of the time, from
// several starts, then what remains as residuals.
//
// A constant is (NCCL's own) * (one factor for all paths) * (a factor of this path's own). The factors of
// kinds are free; a path's own ones are pulled to 1, so that few measurements leave the paths in the relation
// that NCCL gives them. Of an algorithm without protocol LL and Simple are fitted, of a time whose algorithm
// is not known Ring and Tree by both: the cheapest is taken for what the library ran.
#pragma once

#include <span>
#include <string>

#include "src/base/status.h"
#include "src/simulator/system.h"
#include "src/simulator/timed_cell.h"

namespace dynamiccl {

struct FitOptions {
  uint64_t seed = 1;
  int starts = 4;  // the first from NCCL's relations, the others from random places around them
  int iterations = 150;
};

// Ranks of a node as the cells have it: the most of any. 1 without cells.
int RanksPerNode(std::span<const TimedCell> cells);

// Deterministic by the seed. Cells whose ranks do not fill their nodes count for the constants alone. An
// error: a cell without a time above 0, or of a config that has no formula.
Result<System> FitSystem(const std::string& name, std::span<const TimedCell> cells,
                         const FitOptions& options);

// Whether the cell's ranks fill their nodes as those of `system` do.
bool FillsNodes(const System& system, const TimedCell& cell);

// The fit's second half: replaces the residuals of `system` by those of the cells, and finds from which bytes
// a rank cliffs drift, by leaving out one rank count after the other. Only cells
// whose ranks fill their nodes.
void FitResiduals(System& system, std::span<const TimedCell> cells);

}  // namespace dynamiccl
