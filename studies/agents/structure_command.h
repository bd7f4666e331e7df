// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab-agents structure`: measures how well the structure agent recognises the structure of
// programs that it never saw.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "studies/agents/structure/structure_study.h"

namespace dynamiccl::agents {

// The options of the command.
struct StructureSettings {
  StudySettings study;
  // Recorded jobs to judge on as well, in the form of ParseKnownJob.
  std::vector<std::string> jobs;
  // If true, no framework is held out.
  bool only_known = false;
  // If true, only the networks with a held-out framework are trained and judged.
  bool only_held_out = false;
  // The file that gets the result as JSON. If it is empty, no JSON is written. "-" means standard output
  // instead of the tables.
  std::string json;
};

// Trains and judges, which takes minutes for each held-out framework. Progress goes to standard error.
Status StudyStructureCommand(StructureSettings settings);

}  // namespace dynamiccl::agents
