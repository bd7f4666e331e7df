// SPDX-License-Identifier: Apache-2.0
// Reads recorded jobs and runs the study (structure/structure_study.h).
#include "studies/agents/structure_command.h"

#include <fmt/core.h>

#include <cstdio>

#include "agents/json_result.h"
#include "studies/agents/structure/recorded_jobs.h"

namespace dynamiccl::agents {

Status StudyStructureCommand(StructureSettings settings) {
  settings.study.recorded = WireSequences();
  for (const std::string& text : settings.jobs) {
    DYNAMICCL_TRY(const KnownJob job, ParseKnownJob(text));
    DYNAMICCL_TRY(const std::vector<CallSequence> sequences, ReadKnownJob(job));
    settings.study.recorded.insert(settings.study.recorded.end(), sequences.begin(), sequences.end());
  }
  if (settings.only_known) settings.study.hold_out = {"none"};
  settings.study.known = !settings.only_held_out;
  DYNAMICCL_TRY(const StructureStudy study, StudyStructure(settings.study, [](const std::string& line) {
                  fmt::print(stderr, "{}\n", line);
                }));
  if (!JsonIsTheOutput(settings.json)) fmt::print("{}", FormatTables(study));
  return WriteJsonResult(settings.json, FormatJson(study));
}

}  // namespace dynamiccl::agents
