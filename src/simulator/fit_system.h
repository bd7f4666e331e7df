// SPDX-License-Identifier: Apache-2.0
// Fits a system to measured times. First the constants of each path (algorithm and protocol) are fitted by
// Huber's loss on the logarithm of the time, from several starts. The remaining differences then become
// residuals.
//
//   constant = (NCCL's own) * (one factor for all paths of this kind) * (a factor of this path's own)
//
// The factors of kinds are free. A path's own factors are pulled to 1, so that with few measurements the
// paths keep the relation that NCCL gives them. If a time's protocol is not known, LL and Simple are fitted;
// if its algorithm is not known either, Ring and Tree with both protocols. The library is then assumed to
// have run the cheapest of these.
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

// Returns the ranks of a node, which are the most that any cell has on a node; 1 without cells.
int RanksPerNode(std::span<const TimedCell> cells);

// Sets System::errors and System::intervals of `system`, which FitSystem made of these cells: how far
// predictions are off at each rank count, and how wide an interval nine of ten of them need. For each rank
// count, a system fitted to the other rank counts predicts this one. With fewer than three rank counts it
// sets only the intervals at measured rank counts. It sets nothing for a rank count without which the number
// of ranks on a node is not known.
Status StateErrors(System& system, std::span<const TimedCell> cells, const FitOptions& options);

// Fits a system to the cells; the seed determines the result. Cells whose ranks do not fill their nodes count
// for the constants only. Returns kInvalidArgument for a cell without a time above 0 or whose configuration
// has no formula.
Result<System> FitSystem(const std::string& name, std::span<const TimedCell> cells,
                         const FitOptions& options);

// Returns whether the cell's ranks use as few nodes as those of `system` would.
bool FillsNodes(const System& system, const TimedCell& cell);

// The second half of the fit: replaces the residuals of `system` by those of the cells whose ranks fill their
// nodes. Also sets drift_bytes_per_rank, by leaving out one rank count after the other.
void FitResiduals(System& system, std::span<const TimedCell> cells);

// Prior costs: what a path costs before anything was measured. Fits start from these relations and fall back
// to them.

// Returns microseconds and GB/s in the relations of NCCL's own tables (2.30.7, src/graph/tuning.cc): base
// latencies, latencies of NVLink and network hops, and the shares of the bus that LL, LL128 and trees reach.
// They are stated for a node of 200 GB/s and a network of 20 GB/s. A fit multiplies all constants of a kind
// by one factor. CollNet is not known.
PathCosts PriorCosts(Algorithm algorithm, Protocol protocol);

}  // namespace dynamiccl
