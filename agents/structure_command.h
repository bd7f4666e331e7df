// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-agents structure`: how well the structure trigger agent recognises what it never saw.
#pragma once

#include <string>
#include <vector>

#include "agents/evaluation/structure_study.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

struct StructureSettings {
  StudySettings study;
  std::vector<std::string> jobs;  // see ParseKnownJob
  bool only_known = false;        // no framework held out
  bool only_held_out = false;
  std::string json;  // empty: none; "-": standard output instead of the tables
};

Status StudyStructureCommand(StructureSettings settings);

}  // namespace dynamiccl::agents
