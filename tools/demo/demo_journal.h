// SPDX-License-Identifier: Apache-2.0
// Records which runs of a demo have finished, so that a demo that was killed can continue.
// docs/formats/demo_journal.md has the grammar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/format/hashed_lines.h"

namespace dynamiccl {

// The runs of a demo in their order. A run is recognised by its key, a hash of everything that the run
// depends on. The first run whose key differs, or whose output is missing, is run again, and so are all that
// follow it.
//
// DemoSession owns it and uses it on one thread. A line that Finish wrote survives the death of this process,
// but nothing is synced to disk. A file that cannot be written is an error; one that cannot be read is
// replaced.
class DemoJournal {
 public:
  // Continues the journal at `path` if it belongs to the same plan and is undamaged; otherwise begins a new
  // one in its place.
  static Result<DemoJournal> Open(const std::string& path, const std::string& plan);

  // Returns whether the next run has finished in an earlier process: it must have this key, and all its
  // outputs must exist. Each run asks once, in the demo's order. After the first "no" the answer is always
  // "no".
  Result<bool> SkipFinished(const std::string& key, const std::vector<std::string>& outputs);
  // Notes that the run that asked last has finished. Only after SkipFinished has answered "no".
  Status Finish(const std::string& key);
  // Number of runs that earlier processes have finished.
  size_t found() const { return finished_.size(); }
  // Removes the file: the demo is complete, and the next one begins anew.
  void Remove();

 private:
  DemoJournal(std::string path, std::string plan) : path_(std::move(path)), plan_(std::move(plan)) {}
  // Writes the file anew with these keys.
  Status Begin(const std::vector<std::string>& keys);

  std::string path_;
  std::string plan_;
  // Keys of the finished runs that the file had, in the demo's order. The first run that cannot be skipped
  // removes its key and all that follow.
  std::vector<std::string> finished_;
  // Index in finished_ of the next run that calls SkipFinished.
  size_t next_ = 0;
  // Empty as long as runs of an earlier process are skipped, because the file is then already correct.
  std::optional<HashedLineWriter> lines_;
};

}  // namespace dynamiccl
