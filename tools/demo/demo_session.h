// SPDX-License-Identifier: Apache-2.0
// One run of the demo: its folder, log files and clock, and how its programs are started.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/own_file.h"
#include "tools/demo/demo_journal.h"
#include "tools/demo/demo_plan.h"
#include "tools/launch/launch_plan.h"
#include "tools/report/demo_result.h"

namespace dynamiccl {

// The options of `dynamiccl demo`.
struct DemoOptions {
  bool quick = false;
  // File or folder to train on; empty: the cached Shakespeare.
  std::string text;
  // Folder for all files; created if needed.
  std::string output_dir;
  std::string home;
};

// One program of the demo, or one job of several ranks. A step creates it and passes it to DemoSession::Run,
// which fills in log file and time limit.
struct DemoRun {
  // Unique in the demo, such as "compare-stage2-ours".
  std::string label;
  LaunchPlan plan;
  // Path of the merged trace of the run's processes; empty: their calls are not recorded.
  std::string trace;
  // Other files that the run writes. A finished run is started again when one of its files is missing.
  std::vector<std::string> outputs;
};

// The steps share one session and run one after the other, on one thread. The folder belongs to one session
// at a time.
//
// A demo starts some 130 jobs. A job that fails is started once more. If it fails again, the demo continues
// without it where it can, and the result names the job. Finished runs are recorded in a journal, so that a
// demo that was killed can continue.
class DemoSession {
 public:
  // Creates the folder and finds the parts and the text. An error says what is missing and how to get it: a
  // part of the build, the text, room on the disk, or the folder itself, which another demo may hold.
  static Result<DemoSession> Open(const DemoOptions& options);

  const DemoPlan& plan() const { return plan_; }
  const Installation& installation() const { return installation_; }
  const std::string& text() const { return text_; }
  DemoResult& result() { return result_; }
  // Path of a file in the output folder.
  std::string Output(const std::string& file) const { return options_.output_dir + "/" + file; }
  const std::string& output_dir() const { return options_.output_dir; }

  // Announces the step on standard error, with an estimate of the seconds that this and all later steps take.
  void BeginStep(const std::string& name, const std::string& sentence, double remaining_s);
  // Prints a line about progress within the step.
  void Say(const std::string& line) const;
  // Seconds since Open.
  double Elapsed() const;

  // Runs to the end with the output in the step's log file, a second time if the first one fails. Does
  // nothing when an earlier process has finished the run. An error names step, log file and command; an
  // interrupt is kept for interrupted_by().
  Status Run(DemoRun run);
  // Continues without a run that is not essential and notes in the result that it is missing. After an
  // interrupt, and where the disk is full, it returns `error`, which ends the demo.
  Status GoOnWithout(const std::string& label, const Error& error);
  // Returns whether the run has finished, in this process or an earlier one.
  bool Finished(const std::string& label) const { return finished_.contains(label); }
  // Removes the journal because the demo is complete: the next demo in this folder begins anew.
  void Complete() { journal_->Remove(); }

  // The signal that ended a run; 0: none.
  int interrupted_by() const { return interrupted_by_; }

 private:
  DemoSession() = default;
  // Claims the folder for this session, checks the room on its disk, and opens the journal in it.
  Status OpenFolder();
  // Returns a hash of everything on which the run depends. The key of the run before is included, so a
  // changed run changes all keys after it.
  std::string KeyOf(const DemoRun& run);
  // Runs once, without the journal. A recording that fails leaves no file.
  Status Start(const DemoRun& run);
  // Called after a failed run. Returns an error if the disk has no room for another run, because all later
  // runs would fail too.
  Status CheckDisk();

  DemoOptions options_;
  DemoPlan plan_;
  Installation installation_;
  std::string text_;
  DemoResult result_;
  // The lock of the output folder, held for the session's lifetime. Another demo that tries to use the folder
  // fails.
  OwnFile lock_;
  std::optional<DemoJournal> journal_;
  // The key of the latest run.
  std::string key_;
  // Labels of the runs that have finished.
  std::set<std::string> finished_;
  int64_t started_ns_ = 0;
  std::string step_;
  int step_number_ = 0;
  int interrupted_by_ = 0;
  bool disk_is_full_ = false;
};

// Number of steps, for "[2/7]".
inline constexpr int kDemoSteps = 7;

}  // namespace dynamiccl
