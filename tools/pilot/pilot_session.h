// SPDX-License-Identifier: Apache-2.0
// Runs one pilot of a job: records the unchanged job, lets configs take turns within starts of the job, and
// compares the best config, or the user's policy or rules, with NCCL's choice (docs/pilot.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tools/ab/job_in_turns.h"
#include "tools/pilot/pilot_result.h"

namespace dynamiccl {

struct PilotOptions {
  // Says how to launch the job. If it has a policy or rules, the pilot compares these with NCCL's choice and
  // searches for nothing else.
  LaunchOptions launch;
  std::string folder = "pilot";
  // Seconds that the whole pilot may take.
  double budget_s = 900;
  // Number of times that the job is started at the end, to compare NCCL's choice with the other choice.
  int starts = 3;
  bool json = false;
};

// Runs a pilot and reports progress on standard error. The command owns it and calls Run once.
class PilotSession {
 public:
  PilotSession(const CommandLine& line, const PilotOptions& given) : line_(line), given_(given) {}

  // Runs the pilot. It is an error when the job fails. If the job's choices cannot be compared, the result
  // says why.
  Result<PilotResult> Run();
  // The signal that ended the last start of the job; 0: none.
  int interrupted_by() const { return interrupted_by_; }

 private:
  // One of the two sides of a comparison: a setting of `dynamiccl ab`, and its name for people.
  struct Side {
    std::string setting;
    std::string name;
  };

  std::string File(const std::string& name) const { return given_.folder + "/" + name; }
  // The error of a start of the job that failed or that a signal ended. `kept` are the traces that stay in
  // the folder, apart from the job's output.
  Error Failed(const std::string& what, const LaunchOutcome& outcome, const std::vector<std::string>& kept);
  double Elapsed() const;
  // Returns whether one more start of the job would end within `share` of the budget, if it takes as long as
  // the longest start so far.
  bool OneMoreFits(double share) const;
  Status Observe();
  // Returns one list for each start of the job in the search: the settings that take turns in that start. The
  // first is NCCL's choice. The settings that are most likely to win come first.
  std::vector<std::vector<std::string>> Groups() const;
  // Lets every config take turns, and returns for each collective the config with the shortest step. Returns
  // nothing if no config looks faster than NCCL's choice.
  Result<std::optional<Side>> FindFaster();
  // Starts the job once with these settings in turn. Returns the calls of its lowest rank, or nothing where
  // none was recorded.
  Result<std::optional<SectionCalls>> Start(const std::vector<std::string>& settings, uint32_t turn_steps);
  // Compares the two sides in as many starts of the job as the budget allows.
  Status Decide(const Side& first, const Side& ours);

  const CommandLine& line_;
  const PilotOptions& given_;
  const int64_t begun_ns_ = MonotonicNanoseconds();
  double longest_start_s_ = 0;
  int interrupted_by_ = 0;
  // The recorded calls of the first start of the job, in which it ran unchanged.
  SectionCalls observed_;
  PilotResult result_;
};

}  // namespace dynamiccl
