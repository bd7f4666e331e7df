// SPDX-License-Identifier: Apache-2.0
// One run of the demo: its folder, its log files, its clock, and how its programs are started.
#pragma once

#include <string>
#include <vector>

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

// The steps share one session and run one after the other.
class DemoSession {
 public:
  // Creates the folder and finds the parts and the text; an error says which is missing and how to get it.
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

  // Runs to the end with the output in the step's log file. A failure names step, log file and next command;
  // an interrupt is kept for interrupted_by().
  Status Run(LaunchPlan plan);
  // The same for a program that is no job: one process, loaded with nothing.
  Status RunProgram(std::vector<std::string> command);
  // The same with the processes' calls put together into the trace `trace`, whose pattern the plan's
  // environment has.
  Status RunRecorded(LaunchPlan plan, const std::string& trace);

  int interrupted_by() const { return interrupted_by_; }

 private:
  DemoSession() = default;
  void Prepare(LaunchPlan& plan);
  Status Judge(const struct LaunchOutcome& outcome, const LaunchPlan& plan);

  DemoOptions options_;
  DemoPlan plan_;
  Installation installation_;
  std::string text_;
  DemoResult result_;
  int64_t started_ns_ = 0;
  std::string step_;
  int step_number_ = 0;
  int interrupted_by_ = 0;
};

inline constexpr int kDemoSteps = 6;

}  // namespace dynamiccl
