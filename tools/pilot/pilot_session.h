// SPDX-License-Identifier: Apache-2.0
// One pilot of a job: records it as it is, lets configs take turns within starts of it, and compares what
// looked best, or what the user brought, with NCCL's choice (docs/pilot.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tools/ab/job_in_turns.h"
#include "tools/pilot/pilot_result.h"

namespace dynamiccl {

struct PilotOptions {
  // The job's launch. Its policy or rules, where it has some, are what NCCL's choice is compared with.
  LaunchOptions launch;
  std::string folder = "pilot";
  // Seconds for all of it.
  double budget_s = 900;
  // Starts of the job in which the two sides are compared at the end.
  int starts = 3;
  bool json = false;
};

// Owned by the command, which calls Run once. It says on standard error what it does.
class PilotSession {
 public:
  PilotSession(const CommandLine& line, const PilotOptions& given) : line_(line), given_(given) {}

  // It is an error when the job fails. A job that cannot be compared is none: the result says why.
  Result<PilotResult> Run();

 private:
  // A setting of `dynamiccl ab` and what people call it.
  struct Side {
    std::string setting;
    std::string name;
  };

  std::string File(const std::string& name) const { return given_.folder + "/" + name; }
  double Elapsed() const;
  // Whether one more start, as long as the longest so far, ends within `share` of the budget.
  bool OneMoreFits(double share) const;
  Status Observe();
  // Returns the settings that take turns in each start of the search, the likeliest first.
  std::vector<std::vector<std::string>> Groups() const;
  // Lets every config take turns and keeps, for each collective, the one with the shortest step.
  Result<std::optional<Side>> FindFaster();
  // Starts the job once with these settings in turn. Returns the calls of its lowest rank, or nothing where
  // none was recorded.
  Result<std::optional<SectionCalls>> Start(const std::vector<std::string>& settings, uint32_t turn_steps);
  // Compares both sides over all starts that the budget allows.
  Status Decide(const Side& first, const Side& ours);

  const CommandLine& line_;
  const PilotOptions& given_;
  const int64_t begun_ns_ = MonotonicNanoseconds();
  double longest_start_s_ = 0;
  // The calls of the observed start.
  SectionCalls observed_;
  PilotResult result_;
};

}  // namespace dynamiccl
