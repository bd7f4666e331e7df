// SPDX-License-Identifier: Apache-2.0
// Records which runs of a demo have finished, so that a demo that was killed can continue.
// docs/formats/demo_journal.md has the grammar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/format/hashed_lines.h"

namespace dynamiccl {

// The runs of a demo in their order. A run is identified by its key, a hash of everything that the run
// depends on. The first run whose key differs, or whose output is missing, is run again, and so are all later
// runs.
//
// DemoSession owns the journal and uses it on one thread. A line that Finish wrote survives the death of this
// process, but nothing is synced to disk. It is an error if the file cannot be written. A file that cannot be
// read is replaced.
class DemoJournal {
 public:
  // Continues the journal at `path` if it belongs to the same plan and is undamaged; otherwise begins a new
  // one in its place.
  static Result<DemoJournal> Open(const std::string& path, const std::string& plan);

  // Returns whether an earlier process has finished the next run: its recorded key must be `key`, and all its
  // outputs must exist. Each run asks once, in the demo's order. After the first "no" the answer is always
  // "no".
  Result<bool> SkipFinished(const std::string& key, const std::vector<std::string>& outputs);
  // Records that the run for which SkipFinished has just returned false has finished.
  Status Finish(const std::string& key);
  // Number of runs that earlier processes have finished.
  size_t found() const { return finished_.size(); }
  // Removes the file because the demo is complete. The next demo begins anew.
  void Remove();

 private:
  DemoJournal(std::string path, std::string plan) : path_(std::move(path)), plan_(std::move(plan)) {}
  // Replaces the file by one with these keys.
  Status Begin(const std::vector<std::string>& keys);

  std::string path_;
  std::string plan_;
  // Keys of the finished runs in the file, in the demo's order. When a run cannot be skipped, its key and all
  // later keys are removed.
  std::vector<std::string> finished_;
  // Index in finished_ of the next run that calls SkipFinished.
  size_t next_ = 0;
  // Writes the file. It is not set while runs of an earlier process are skipped, because the file already has
  // their lines.
  std::optional<HashedLineWriter> lines_;
};

}  // namespace dynamiccl
