// SPDX-License-Identifier: Apache-2.0
// The state of one demo: its output folder, log files and clock, and how its programs are started.
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
  // File or folder with the text to train on; empty: the cached text of Shakespeare.
  std::string text;
  // Folder for all files; created if needed.
  std::string output_dir;
  std::string home;
};

// One program of the demo, or one job of several ranks. A step of the demo creates it and passes it to
// DemoSession::Run, which adds the log file and the time limit.
struct DemoRun {
  // Name of the run, unique in the demo, such as "compare-stage2-ours".
  std::string label;
  LaunchPlan plan;
  // Path of the trace that merges the recordings of all processes of the run; empty: nothing is recorded.
  std::string trace;
  // Other files that the run writes. A finished run is started again when one of its files is missing.
  std::vector<std::string> outputs;
};

// Starts the demo's programs and collects the result. The steps of the demo share one session and run one
// after the other, on one thread. The output folder belongs to one session at a time.
//
// A demo starts some 130 jobs. A job that fails is started once more. If it fails again, the demo continues
// without it if possible, and the result names the job. Finished runs are recorded in a journal, so that a
// demo that was killed can continue.
class DemoSession {
 public:
  // Creates the output folder and finds the installed programs and the training text. An error says what is
  // missing and how to get it: a part of the build, the text, space on the disk, or the folder itself, if
  // another command uses it.
  static Result<DemoSession> Open(const DemoOptions& options);

  const DemoPlan& plan() const { return plan_; }
  const Installation& installation() const { return installation_; }
  const std::string& text() const { return text_; }
  DemoResult& result() { return result_; }
  // Path of a file in the output folder.
  std::string Output(const std::string& file) const { return options_.output_dir + "/" + file; }
  const std::string& output_dir() const { return options_.output_dir; }

  // Announces a step of the demo on standard error, with an estimate of the seconds until the end of the
  // demo.
  void BeginStep(const std::string& name, const std::string& sentence, double remaining_s);
  // Prints a line about progress within the step.
  void Say(const std::string& line) const;
  // Seconds since Open.
  double Elapsed() const;

  // Runs a program to its end, with its output in the step's log file. If it fails, runs it once more. Does
  // nothing when an earlier process has finished the run. An error names the step, the log file and the
  // command. If a signal ended the program, interrupted_by() returns it.
  Status Run(DemoRun run);
  // Notes in the result that a run is missing, so that the demo can continue without it. After an interrupt,
  // or if the disk is full, returns `error` instead, which ends the demo.
  Status GoOnWithout(const std::string& label, const Error& error);
  // Returns whether the run has finished, in this process or an earlier one.
  bool Finished(const std::string& label) const { return finished_.contains(label); }
  // Removes the journal because the demo is complete. The next demo in this folder then begins anew.
  void Complete() { journal_->Remove(); }

  // The signal that ended a run; 0: none.
  int interrupted_by() const { return interrupted_by_; }

 private:
  DemoSession() = default;
  // Locks the output folder for this session, checks the free space on its disk, and opens the journal in it.
  Status OpenFolder();
  // Returns a hash of everything on which the run depends. It includes the key of the previous run, so a
  // changed run changes the keys of all later runs.
  std::string KeyOf(const DemoRun& run);
  // Starts the program once, without asking the journal. If the program fails, its trace file is removed.
  Status Start(const DemoRun& run);
  // Called after a failed run. Returns an error if the disk has no room for another run, because all later
  // runs would fail too.
  Status CheckDisk();

  DemoOptions options_;
  DemoPlan plan_;
  Installation installation_;
  std::string text_;
  DemoResult result_;
  // The lock of the output folder, held for the session's lifetime. Another command that tries to use the
  // folder fails.
  OwnFile lock_;
  std::optional<DemoJournal> journal_;
  // The key (hash) of the latest run.
  std::string key_;
  // Labels of the runs that have finished.
  std::set<std::string> finished_;
  int64_t started_ns_ = 0;
  std::string step_;
  int step_number_ = 0;
  int interrupted_by_ = 0;
  bool disk_is_full_ = false;
};

// Number of the demo's steps, for messages such as "[2/7]".
inline constexpr int kDemoSteps = 7;

}  // namespace dynamiccl
