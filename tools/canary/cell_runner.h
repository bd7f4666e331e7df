// SPDX-License-Identifier: Apache-2.0
// Runs releases of NCCL for the canary and caches the results (cells), so that the same run is made only
// once.
#pragma once

#include <string>

#include "tools/canary/cell.h"

namespace dynamiccl {

// Caches the results of runs (cells) under ~/.cache/dynamiccl/canary, one file for each
// (docs/formats/canary-cell.md). A file's name is a hash of everything that decides the result: the request
// without its time limit, the release's library, and the programs that run it. A run is repeated when its
// file is damaged or of another version. The results of runs that hung or could not be made are not cached.
// Safe to use from several threads.
class CellRunner {
 public:
  // With `keeps` false the cache is neither read nor written.
  CellRunner(const Installation& installation, bool keeps);

  Result<Cell> Run(const CellRequest& request) const;
  // Runs the release even if the cache has a result.
  Result<Cell> RunAgain(const CellRequest& request) const;

 private:
  std::string PathOf(const CellRequest& request) const;

  const Installation& installation_;
  const bool keeps_;
  std::string objects_hash_;
};

}  // namespace dynamiccl
