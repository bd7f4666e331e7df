// SPDX-License-Identifier: Apache-2.0
// One tune of a job: watches it as it is, then starts it again and again with candidates until the search or
// the budget ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/launch_options.h"
#include "tools/tune/tune_journal.h"
#include "tools/tune/tune_search.h"

namespace dynamiccl {

struct TuneOptions {
  LaunchOptions launch;
  std::string folder = "tune";
  // Seconds for all of it. The starts of an interrupted tune that is continued count too.
  double budget_s = 600;
  // Seconds after which one start of the job is ended; what it recorded until then counts.
  double start_limit_s = 60;
  // Candidates to try in place of the list: "bucket_cap_mb=100", "ring/simple/1" or both with a comma.
  std::vector<std::string> only;
};

// The result of a tune, for tune_result.h.
struct TuneResult {
  std::string command;
  Framework framework = Framework::kOther;
  int ranks = 0;
  // Milliseconds of a step in the start that only watched.
  double watched_ms = 0;
  // Calls of a step, in words.
  std::string calls;
  std::vector<TriedCandidate> tried;
  // The candidates' ratios with intervals, in the order of `tried`.
  std::vector<TunedRatio> ratios;
  // For each of `tried`, the receipts' reasons (JobStart::seen).
  std::vector<std::string> seen;
  // Index of the best candidate; 0: the job as it is.
  size_t best = 0;
  // Number of times that the job was started, also by earlier tunes that wrote the same journal.
  size_t starts = 0;
  // True if the budget ended the search before it was over.
  bool budget_ended = false;
  // Candidates on which no start was spent.
  std::vector<Candidate> not_tried;
  std::vector<std::string> notes;

  // Median step of the job as it is, in milliseconds; where nothing was tried beside it, watched_ms.
  double OwnStepMs() const;
};

// Owned by the command, which calls Run once. It says on standard error what it does.
class TuneSession {
 public:
  TuneSession(const CommandLine& line, TuneOptions& given) : line_(line), given_(given) {}

  // An error where the job itself fails, repeats no step, or is interrupted; the journal then allows to go
  // on.
  Result<TuneResult> Run();
  // The signal that ended Run; 0: none.
  int interrupted_by() const { return interrupted_by_; }

 private:
  std::string File(const std::string& name) const { return given_.folder + "/" + name; }
  double Elapsed() const;
  std::chrono::milliseconds StartLimit() const;
  // Starts the job once. A candidate that fails is no error: the start says why.
  Result<JobStart> Start(const Candidate& candidate, const std::string& times, WatchedRun& run);
  // `times`: RuntimeOptions::times.
  Result<LaunchOutcome> Launch(const Candidate& candidate, const std::string& times,
                               const std::string& folder);
  Result<JobStart> FindOrStart(const Candidate& candidate, int turn);
  Status Observe();
  Result<CandidateList> ListOf();
  // Lets the configs of the list take turns within one start, and keeps those that are faster there. Configs
  // that the user named with --try are kept as they are.
  Status TryConfigsInTurns(CandidateList& list);
  Result<JobStart> StartConfigs(const CandidateList& list);
  // Predicts what the framework's candidates are worth. Empty, with a note, where that is not possible.
  std::vector<Forecast> Predict(CandidateList& list);
  // Orders the list by forecasts and cuts it to the budget, both as an earlier process did where one began.
  Result<SearchShape> Shape(CandidateList& list);
  // Returns how much of the list fits the budget with time left for the final.
  SearchShape ShapeFor(const CandidateList& list) const;
  Status RunTurns(TuneSearch& search);
  Status RunTurn(TuneSearch& search, const std::vector<size_t>& turn);
  // Gives a candidate up that fails, is not in effect, or is the same as another.
  void Weigh(TuneSearch& search, size_t candidate, const JobStart& start);
  bool FitsBudget(size_t starts) const;

  const CommandLine& line_;
  TuneOptions& given_;
  int interrupted_by_ = 0;
  int64_t begun_ns_ = 0;
  // Seconds of starts that an earlier process ran.
  double earlier_s_ = 0;
  // Seconds of the starts so far, for the estimate of those to come.
  double starts_s_ = 0;
  std::optional<TuneJournal> journal_;
  WatchedRun base_;
  TuneResult result_;
  // JobStart::seen of each candidate, by its name.
  std::map<std::string, std::string> seen_;
  // The candidate that first had these AllReduces, by their sizes.
  std::map<std::string, std::string> by_buckets_;
};

}  // namespace dynamiccl
