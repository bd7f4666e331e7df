// SPDX-License-Identifier: Apache-2.0
// Keeps the results of each start of the job that a tune has finished, so that an interrupted tune can
// continue. docs/formats/tune_journal.md has the grammar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/tune/change_prediction.h"
#include "traces/format/hashed_lines.h"

namespace dynamiccl {

// The result of one start of the job with one candidate.
struct JobStart {
  int turn = 0;
  // The candidate's name.
  std::string candidate;
  // Median of the steps in milliseconds; 0 if the job failed.
  double step_ms = 0;
  // The reason why the candidate cannot be used. Empty if it can.
  std::string failure;
  // Says how the calls of a step prove the candidate's settings: the reasons of all receipts. If configs took
  // turns in this start of the job, it has instead the verdicts about them (TextOf in config_turns.h).
  std::string seen;
  // Bytes of each AllReduce of a step. Two candidates with equal lists are the same to NCCL, so only one is
  // tried.
  std::string buckets;
  // Duration of this start of the job in seconds.
  double seconds = 0;
  // True if the job ran, but no steps were found, or steps other than those of its first start. The field is
  // not written to the journal: a failed start of the unchanged job has no record there.
  bool other_steps = false;
};

// The order in which a tune tries candidates, and how it was cut to fit the budget. A continued tune keeps
// the order with which it began, because the journal's results belong to that order.
struct SearchShape {
  // The most candidates that are tried.
  size_t most = 0;
  // Number of rounds (one run of every candidate that is left) after which the slower half of the candidates
  // is given up.
  int level_rounds = 1;
  std::vector<Forecast> forecasts = {};
};

// The journal of one tune. TuneSession owns it and uses it on one thread. A continued tune needs the same
// starts of the job in the same order. So Next compares each start with the next result in the journal and
// returns the result if both match. From the first that does not match on, the journal's results are dropped
// and the job is started.
class TuneJournal {
 public:
  // Continues the journal at `path` if it was begun with the same `plan`, the text that identifies a tune. A
  // journal of another plan is an error. If the file is damaged or of another version, begins a new journal.
  static Result<TuneJournal> Open(const std::string& path, const std::string& plan);

  // Returns the shape of the search that an earlier process began. Returns nothing if the journal is new.
  std::optional<SearchShape> FoundShape() const;
  // Sets the shape with which the journal begins. Call it before Add if FoundShape returned nothing.
  void SetShape(const SearchShape& shape) { shape_ = shape; }
  // Returns the result that an earlier process recorded for this turn and candidate. Returns nothing if the
  // job has to be started.
  std::optional<JobStart> Next(int turn, const std::string& candidate);
  Status Add(const JobStart& start);
  // Number of starts of the job whose results earlier processes recorded.
  size_t found() const { return found_.size(); }
  // Removes the file, because the tune is complete.
  void Remove();

 private:
  TuneJournal(std::string path, std::string plan) : path_(std::move(path)), plan_(std::move(plan)) {}
  Status Begin();

  std::string path_;
  std::string plan_;
  SearchShape shape_;
  std::vector<JobStart> found_;
  size_t next_ = 0;
  // Writes the journal. Set when the first result of this process is added.
  std::optional<HashedLineWriter> lines_;
};

}  // namespace dynamiccl
