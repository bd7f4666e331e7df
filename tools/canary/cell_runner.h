// SPDX-License-Identifier: Apache-2.0
// Runs cells, and keeps what came of them: the same cell is run once.
#pragma once

#include <string>

#include "tools/canary/cell.h"

namespace dynamiccl {

// Cells are kept under ~/.cache/dynamiccl/canary, one file each (docs/formats/canary-cell.md), named by a
// hash of all that decides the outcome: the request but its limit, the release's library and the objects of
// the stand-in. A kept cell that is damaged or of another version is run again. Runs that hung or could not
// be made are not kept. Safe to use from several threads.
class CellRunner {
 public:
  // With `keeps` false nothing is read from the cache, and nothing written.
  CellRunner(const Installation& installation, bool keeps);

  Result<Cell> Run(const CellRequest& request) const;
  // Runs the cell whatever is kept.
  Result<Cell> RunAgain(const CellRequest& request) const;

 private:
  std::string PathOf(const CellRequest& request) const;

  const Installation& installation_;
  const bool keeps_;
  std::string objects_hash_;
};

}  // namespace dynamiccl
