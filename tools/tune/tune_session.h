// SPDX-License-Identifier: Apache-2.0
// Runs one tune of a job: watches the unchanged job, then starts it with one candidate after the other until
// the search is over or the budget is spent.
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
  // Seconds that the tune may take. If an interrupted tune is continued, the runs of the job before the
  // interrupt count too.
  double budget_s = 600;
  // Seconds after which a run of the job is ended. What the run has recorded until then counts.
  double start_limit_s = 60;
  // Candidates to try instead of the automatic list: "bucket_cap_mb=100", "ring/simple/1", or both separated
  // by a comma.
  std::vector<std::string> only;
};

// The result of a tune, for tune_result.h.
struct TuneResult {
  std::string command;
  Framework framework = Framework::kOther;
  // True if the job is a script of Megatron-LM, whichever framework is tuned in it.
  bool megatron = false;
  int ranks = 0;
  // Milliseconds of a step in the first run of the job, which was only watched.
  double watched_ms = 0;
  // The calls of a step, described in words.
  std::string calls;
  // The settings that decide the job's communication (job_description.h).
  std::string job;
  std::vector<TriedCandidate> tried;
  // The candidates' ratios with intervals, in the order of `tried`.
  std::vector<TunedRatio> ratios;
  // For each candidate of `tried`, the reasons of its receipts (JobStart::seen).
  std::vector<std::string> seen;
  // Index of the best candidate; 0: the job as it is.
  size_t best = 0;
  // Number of times that the job was started: those in which it was only watched, those in which configs took
  // turns, and those of the turns, also in earlier processes of this tune.
  size_t starts = 0;
  // Seconds that the tune was given (TuneOptions::budget_s).
  double budget_s = 0;
  // The budget in seconds with which the search could have made its next turn, if the budget ended the
  // search; else 0.
  double needed_s = 0;
  // Candidates with which the job was never started.
  std::vector<Candidate> not_tried;
  std::vector<std::string> notes;

  // Median step of the unchanged job in milliseconds, over the turns. Without any turn it is watched_ms.
  double OwnStepMs() const;
};

// Runs a tune and reports progress on standard error. The command owns it and calls Run once.
class TuneSession {
 public:
  TuneSession(const CommandLine& line, TuneOptions& given) : line_(line), given_(given) {}

  // Runs the tune. It is an error if the unchanged job fails, repeats no step, or is interrupted. After an
  // interrupt the journal lets the same command continue.
  Result<TuneResult> Run();
  // Removes the journal, after a search that is over and whose result is written.
  void RemoveJournal() { journal_->Remove(); }
  // The signal that ended Run; 0: none.
  int interrupted_by() const { return interrupted_by_; }

 private:
  std::string File(const std::string& name) const { return given_.folder + "/" + name; }
  double Elapsed() const;
  std::chrono::milliseconds StartLimit() const;
  // Starts the job once with a candidate. If the candidate fails, JobStart::failure says why; this is no
  // error.
  Result<JobStart> Start(const Candidate& candidate, const std::string& times, WatchedRun& run);
  // `times`: RuntimeOptions::times.
  Result<LaunchOutcome> Launch(const Candidate& candidate, const std::string& times,
                               const std::string& folder);
  Result<JobStart> FindOrStart(const Candidate& candidate, int turn);
  // Starts the unchanged job for a turn. A start whose steps are not those of the first one is left out, and
  // the job is started again.
  Result<JobStart> StartUnchanged(int turn);
  Status Observe();
  // Finds out whether the command starts Megatron-LM or the project's own trainer, and if the trainer, with
  // which settings. Notes where no framework was found.
  void RecogniseByCommand();
  Result<CandidateList> ListOf();
  // Lets the configs of the list take turns within a start of the job, and within up to two more while some
  // seem faster but are not surely so. Keeps the configs that are surely faster. Configs that the user named
  // with --try are all kept.
  Status TryConfigsInTurns(CandidateList& list);
  // Returns one of the starts in which configs take turns, from the journal if it is there. `number` counts
  // them from 1. The verdicts of the last one name no open configs.
  Result<JobStart> FindOrStartConfigs(const CandidateList& list, int number);
  Result<JobStart> StartConfigs(const CandidateList& list, const std::string& name);
  // Predicts what the framework's candidates are worth, and describes the job. If this is not possible,
  // returns nothing and adds a note to the list.
  std::vector<Forecast> Predict(CandidateList& list);
  // Orders the list by the forecasts and cuts it to the budget. A continued tune uses the order and length of
  // the earlier process.
  Result<SearchShape> Shape(CandidateList& list);
  // Returns how many candidates can be tried within the budget, if the final still gets the time that it
  // needs.
  SearchShape ShapeFor(const CandidateList& list) const;
  Status RunTurns(TuneSearch& search);
  Status RunTurn(TuneSearch& search, const std::vector<size_t>& turn);
  // Gives up a candidate that failed, is not in effect, or makes the same calls as another.
  void Weigh(TuneSearch& search, size_t candidate, const JobStart& start);
  // Returns the expected seconds from the tune's beginning to the end of `starts` more starts of the job.
  double ElapsedAfter(size_t starts) const;
  bool FitsBudget(size_t starts) const { return ElapsedAfter(starts) <= given_.budget_s; }
  // Returns the error of a tune that ends because the unchanged job failed, or had other steps than in its
  // first start, `tries` times in a row.
  Error UnchangedFailed(const JobStart& start, int turn, int tries) const;

  const CommandLine& line_;
  TuneOptions& given_;
  int interrupted_by_ = 0;
  int64_t begun_ns_ = 0;
  // Seconds that all starts of the job took in earlier processes of this tune.
  double earlier_s_ = 0;
  // Seconds that all starts of the job in turns took so far, and their number. They give the expected
  // duration of later starts. Until the first turn, both are those of the start that was only watched.
  double starts_s_ = 0;
  size_t starts_in_turns_ = 0;
  std::optional<TuneJournal> journal_;
  WatchedRun base_;
  TuneResult result_;
  // Says how the calls of a step prove each candidate's settings (JobStart::seen), by the candidate's name.
  std::map<std::string, std::string> seen_;
  // For the AllReduces of a step (JobStart::buckets), the name of the first candidate that had them.
  std::map<std::string, std::string> by_buckets_;
};

}  // namespace dynamiccl
