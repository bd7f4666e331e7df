// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-agents timing`: how soon a change of the fabric is noticed at equal false alarms.
#pragma once

#include <string>

#include "agents/timing/timing_study.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

struct TimingSettings {
  TimingStudySettings study;
  std::string json;  // empty: none; "-": standard output instead of the tables
};

Status StudyTimingCommand(const TimingSettings& settings);

}  // namespace dynamiccl::agents
