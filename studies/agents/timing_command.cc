// SPDX-License-Identifier: Apache-2.0
// Runs the timing study (timing/timing_study.h) and prints its tables or JSON.
#include "studies/agents/timing_command.h"

#include <fmt/core.h>

#include <cstdio>

#include "agents/json_result.h"

namespace dynamiccl::agents {

Status StudyTimingCommand(const TimingSettings& settings) {
  DYNAMICCL_TRY(
      const std::vector<DatasetStudy> study,
      StudyTiming(settings.study, [](const std::string& line) { fmt::print(stderr, "{}\n", line); }));
  if (!JsonIsTheOutput(settings.json)) fmt::print("{}", FormatTables(study));
  return WriteJsonResult(settings.json, FormatJson(study));
}

}  // namespace dynamiccl::agents
