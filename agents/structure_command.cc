// SPDX-License-Identifier: Apache-2.0
#include "agents/structure_command.h"

#include <fmt/core.h>

#include <cstdio>
#include <fstream>

#include "agents/evaluation/recorded_jobs.h"

namespace dynamiccl::agents {

Status StudyStructureCommand(StructureSettings settings) {
  settings.study.recorded = WireSequences();
  for (const std::string& text : settings.jobs) {
    DYNAMICCL_TRY(const KnownJob job, ParseKnownJob(text));
    DYNAMICCL_TRY(const std::vector<CallSequence> sequences, ReadKnownJob(job));
    settings.study.recorded.insert(settings.study.recorded.end(), sequences.begin(), sequences.end());
  }
  if (settings.only_known) settings.study.hold_out = {"none"};
  DYNAMICCL_TRY(const StructureStudy study, StudyStructure(settings.study, [](const std::string& line) {
                  fmt::print(stderr, "{}\n", line);
                }));
  if (settings.json == "-") {
    fmt::print("{}", FormatJson(study));
    return {};
  }
  fmt::print("{}", FormatTables(study));
  if (settings.json.empty()) return {};
  std::ofstream file(settings.json);
  file << FormatJson(study);
  file.close();
  if (!file) return MakeError(ErrorKind::kUnavailable, "{}: cannot be written", settings.json);
  return {};
}

}  // namespace dynamiccl::agents
