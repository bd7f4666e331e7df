// SPDX-License-Identifier: Apache-2.0
// Runs releases of NCCL for the canary and caches the results (cells), so that the same run is made only
// once.
#pragma once

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tools/canary/cell.h"

namespace dynamiccl {

// Caches the results of runs (cells) under ~/.cache/dynamiccl/canary, one file for each
// (docs/formats/canary-cell.md). A file's name is a hash of everything that decides the result: the request
// without its time limit, the release's library, and the programs that run it. A run is repeated when its
// file is damaged or of another version. The results of runs that hung or could not be made are not cached.
// Safe to use from several threads. At most one run for each core takes place at a time, and fewer when runs
// have so many ranks that the cores or the memory would not suffice for them together.
class CellRunner {
 public:
  // With `keeps` false the cache is neither read nor written. `cores`: those of this machine by default.
  CellRunner(const Installation& installation, bool keeps, int cores = 0);
  // Waits for runs that were begun and whose results nobody took.
  ~CellRunner() = default;

  // Starts these runs, each on a thread of its own. Of equal requests one is started. Run then takes their
  // results, each once.
  void Begin(const std::vector<CellRequest>& requests) const;
  Result<Cell> Run(const CellRequest& request) const;
  // Runs the release even if the cache has a result or such a run was begun.
  Result<Cell> RunAgain(const CellRequest& request) const;

 private:
  std::string PathOf(const CellRequest& request) const;
  Result<Cell> RunOrReadKept(const CellRequest& request) const;

  const Installation& installation_;
  const bool keeps_;
  const int cores_;
  const int ranks_at_once_;
  std::string objects_hash_;
  mutable std::mutex mutex_;  // protects the members below
  mutable std::condition_variable ended_;
  mutable int running_ = 0;
  mutable std::map<std::string, std::future<Result<Cell>>> begun_;  // by PathOf
};

}  // namespace dynamiccl
