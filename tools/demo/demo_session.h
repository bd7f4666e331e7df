// SPDX-License-Identifier: Apache-2.0
// One run of the demo: its folder, its log files, its clock, and how its programs are started.
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

struct DemoOptions {
  bool quick = false;
  std::string text;        // file or folder to train on; empty: the cached Shakespeare
  std::string output_dir;  // created
  std::string home;
};

// One program of the demo, or one job of several ranks.
struct DemoRun {
  std::string label;  // unique in the demo: "compare-stage2-ours-1"
  LaunchPlan plan;
  std::string trace;  // where the calls of its processes go together; empty: they are not recorded
  std::vector<std::string> outputs;  // further files that it leaves
};

// The steps share one session and run one after the other, on one thread. The folder belongs to one session
// at a time.
//
// A demo starts some 250 jobs. One that fails is started once more; when it fails again the demo goes on
// without it where it can, and says so in its result. What has finished is written down, so that a demo that
// was killed goes on.
class DemoSession {
 public:
  // Creates the folder and finds the parts and the text. An error says what is missing and how to get it: a
  // part of the build, the text, room on the disk, or the folder itself, which another demo may hold.
  static Result<DemoSession> Open(const DemoOptions& options);

  const DemoPlan& plan() const { return plan_; }
  const Installation& installation() const { return installation_; }
  const std::string& text() const { return text_; }
  DemoResult& result() { return result_; }
  std::string Output(const std::string& file) const { return options_.output_dir + "/" + file; }
  const std::string& output_dir() const { return options_.output_dir; }

  // Says on standard error what begins, and about how long all that is left may take.
  void BeginStep(const std::string& name, const std::string& sentence, double remaining_s);
  // A line about progress within the step.
  void Say(const std::string& line) const;
  // Seconds since Open.
  double Elapsed() const;

  // Runs to the end with the output in the step's log file, twice if the first time fails. Does nothing when
  // an earlier process has done it. A failure names step, log file and command; an interrupt is kept for
  // interrupted_by().
  Status Run(DemoRun run);
  // For a run that the demo can do without: notes in the result that it is missing. An interrupt ends the
  // demo all the same.
  Status GoOnWithout(const std::string& label, const Error& error);
  // Whether the run has been done, in this process or an earlier one.
  bool Finished(const std::string& label) const { return finished_.contains(label); }
  // Takes the journal away: the demo is complete.
  void Complete() { journal_->Remove(); }

  int interrupted_by() const { return interrupted_by_; }

 private:
  DemoSession() = default;
  Status OpenFolder();
  std::string KeyOf(const DemoRun& run);
  Status Start(const DemoRun& run);

  DemoOptions options_;
  DemoPlan plan_;
  Installation installation_;
  std::string text_;
  DemoResult result_;
  OwnFile lock_;  // held: this session has the folder
  std::optional<DemoJournal> journal_;
  std::string key_;  // of the last run
  std::set<std::string> finished_;
  int64_t started_ns_ = 0;
  std::string step_;
  int step_number_ = 0;
  int interrupted_by_ = 0;
};

inline constexpr int kDemoSteps = 6;

}  // namespace dynamiccl
