// SPDX-License-Identifier: Apache-2.0
// Keeps the starts that a tune has finished, so that an interrupted tune can continue.
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
  // The reason why the candidate cannot be used. Empty if it can.
  std::string failure;
  // How the calls of a step prove the candidate's settings: the reasons of all receipts. For the start in
  // which configs take turns, it is instead the names of the faster configs.
  std::string seen;
  // Bytes of each AllReduce of a step. Two candidates with equal lists are the same to NCCL, so only one is
  // tried.
  std::string buckets;
  // Duration of the start in seconds.
  double seconds = 0;
};

// The order of a search, and how the search was cut to fit its budget. A continued tune keeps the shape with
// which it began, because the same starts must come in the same order.
struct SearchShape {
  // The most candidates that are tried.
  size_t most = 0;
  // Number of rounds after which the slower half of the candidates is given up.
  int level_rounds = 1;
  std::vector<Forecast> forecasts = {};
};

// The journal of one tune. TuneSession owns it and uses it on one thread. The same search asks for the same
// starts in the same order, so each start is compared with the next one of the journal. From the first that
// differs on, the journal's starts are dropped and the job is started again.
class TuneJournal {
 public:
  // Continues the journal at `path` if it is of this plan and undamaged; otherwise begins a new one.
  static Result<TuneJournal> Open(const std::string& path, const std::string& plan);

  // Returns the shape of the search that an earlier process began; nothing if there was none.
  std::optional<SearchShape> FoundShape() const;
  // Sets the shape with which the journal begins. Call it before Add if FoundShape returned nothing.
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
