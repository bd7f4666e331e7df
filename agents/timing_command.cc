// SPDX-License-Identifier: Apache-2.0
#include "agents/timing_command.h"

#include <fmt/core.h>

#include <cstdio>
#include <fstream>

namespace dynamiccl::agents {

Status StudyTimingCommand(const TimingSettings& settings) {
  DYNAMICCL_TRY(
      const std::vector<DatasetStudy> study,
      StudyTiming(settings.study, [](const std::string& line) { fmt::print(stderr, "{}\n", line); }));
  fmt::print("{}", settings.json == "-" ? FormatJson(study) : FormatTables(study));
  if (settings.json.empty() || settings.json == "-") return {};
  std::ofstream file(settings.json);
  file << FormatJson(study);
  file.close();
  if (!file) return MakeError(ErrorKind::kUnavailable, "{}: cannot be written", settings.json);
  return {};
}

}  // namespace dynamiccl::agents
