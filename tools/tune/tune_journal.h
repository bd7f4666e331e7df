// SPDX-License-Identifier: Apache-2.0
// The starts that a tune has finished, so that one that was interrupted goes on where it ended.
// docs/formats/tune_journal.md has the grammar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/tune/change_prediction.h"
#include "traces/format/hashed_lines.h"

namespace dynamiccl {

// One start of the job with one candidate.
struct JobStart {
  int turn = 0;
  // The candidate's name.
  std::string candidate;
  // Median of the steps in milliseconds; 0 where the start failed.
  double step_ms = 0;
  // Says why the candidate cannot be used. Empty if it can.
  std::string failure;
  // Says how the calls of a step show the candidate's settings: the receipts' reasons, joined. Of the start
  // with configs in turns: the names of those that were faster.
  std::string seen;
  // Bytes of each AllReduce of a step. Two candidates with equal lists are the same to NCCL, so only one is
  // tried.
  std::string buckets;
  // The start took so long.
  double seconds = 0;
};

// The order of a search, and how it was cut to its budget. A tune that goes on keeps the shape that it began
// with, because the same starts must come in the same order.
struct SearchShape {
  // Number of candidates of the list.
  size_t most = 0;
  // Rounds before the slower half is given up.
  int level_rounds = 1;
  std::vector<Forecast> forecasts = {};
};

// TuneSession owns it and uses it on one thread. The same search asks for the same starts in the same order,
// so each start is looked up once, in order. The first that differs ends the looking up and removes what
// follows.
class TuneJournal {
 public:
  // Continues the journal at `path` if it is of this plan and undamaged; otherwise begins a new one.
  static Result<TuneJournal> Open(const std::string& path, const std::string& plan);

  // The shape of the search that an earlier process began; nothing where this one begins it.
  std::optional<SearchShape> FoundShape() const;
  // Has the journal begin with this shape. Call it before Add where nothing was found.
  void SetShape(const SearchShape& shape) { shape_ = shape; }
  // Returns what an earlier process recorded of this start; nothing if the start has to run.
  std::optional<JobStart> Next(int turn, const std::string& candidate);
  Status Add(const JobStart& start);
  // Number of starts that earlier processes finished.
  size_t found() const { return found_.size(); }
  // Removes the file, because the tune is complete.
  void Remove();

 private:
  TuneJournal(std::string path, std::string plan) : path_(std::move(path)), plan_(std::move(plan)) {}

  std::string path_;
  std::string plan_;
  SearchShape shape_;
  std::vector<JobStart> found_;
  size_t next_ = 0;
  // Set when the first start of this process is added.
  std::optional<HashedLineWriter> lines_;
};

}  // namespace dynamiccl
