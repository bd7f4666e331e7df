// SPDX-License-Identifier: Apache-2.0
// The starts that a tune has finished, so that one that was interrupted goes on where it ended.
// docs/formats/tune_journal.md has the grammar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "traces/format/hashed_lines.h"

namespace dynamiccl {

// One start of the job with one candidate.
struct JobStart {
  int turn = 0;
  // The candidate's name.
  std::string candidate;
  // Median of the steps in milliseconds; 0 where the start failed.
  double step_ms = 0;
  // Why the candidate cannot be used; empty: it can.
  std::string failure;
  // What the calls of a step show about the candidate's settings.
  std::string seen;
  // Sizes of a step's AllReduces. Candidates with the same ones are the same.
  std::string buckets;
  // Time that the start took.
  double seconds = 0;
};

// How a search was cut to its budget. A tune that goes on keeps the shape that it began with, because the
// same starts must come in the same order.
struct SearchShape {
  // Number of candidates of the list.
  size_t most = 0;
  // Rounds before the slower half is given up.
  int level_rounds = 1;
};

// TuneSession owns it and uses it on one thread. The same search asks for the same starts in the same order,
// so each start is looked up once, in order. The first that differs ends the looking up and removes what
// follows.
class TuneJournal {
 public:
  // Continues the journal at `path` if it is of this plan and undamaged; otherwise begins a new one.
  static Result<TuneJournal> Open(const std::string& path, const std::string& plan);

  // The shape of the search that an earlier process began; `shape` where this one begins it.
  SearchShape ShapeOr(const SearchShape& shape);
  // The start of an earlier process; nothing where it has to run.
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
