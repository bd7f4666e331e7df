// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab-agents timing`: measures how soon a change of the fabric is noticed, at equal rates of false
// alarms.
#pragma once

#include <string>

#include "src/base/status.h"
#include "studies/agents/timing/timing_study.h"

namespace dynamiccl::agents {

// The options of the command.
struct TimingSettings {
  TimingStudySettings study;
  // The file that gets the result as JSON. If it is empty, no JSON is written. "-" means standard output
  // instead of the tables.
  std::string json;
};

// Runs the study. Progress goes to standard error.
Status StudyTimingCommand(const TimingSettings& settings);

}  // namespace dynamiccl::agents
