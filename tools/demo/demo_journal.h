// SPDX-License-Identifier: Apache-2.0
// Which runs of a demo have finished, so that a demo that was killed goes on where it was. Grammar:
// docs/formats/demo_journal.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/format/hashed_lines.h"

namespace dynamiccl {

// The runs of a demo in their order. A run is known again by its key, which stands for everything that it
// depends on; the first run whose key is another, or whose output is gone, begins anew, and so do all that
// follow it.
class DemoJournal {
 public:
  // Goes on with the journal at `path` when it is of the same plan and undamaged, else begins one over it.
  static Result<DemoJournal> Open(const std::string& path, const std::string& plan);

  // Whether the next run has finished in an earlier process: it must have this key and all its outputs must
  // exist. Each run asks once, in the demo's order.
  Result<bool> SkipFinished(const std::string& key, const std::vector<std::string>& outputs);
  // The run that asked last has finished.
  Status Finish(const std::string& key);
  // Runs that earlier processes have finished.
  size_t found() const { return finished_.size(); }
  // Removes the file: the demo is complete, and the next one begins anew.
  void Remove();

 private:
  DemoJournal(std::string path, std::string plan) : path_(std::move(path)), plan_(std::move(plan)) {}
  Status Begin(const std::vector<std::string>& keys);

  std::string path_;
  std::string plan_;
  std::vector<std::string> finished_;  // keys found in the file
  size_t next_ = 0;                    // of finished_
  std::optional<HashedLineWriter> lines_;
};

}  // namespace dynamiccl
