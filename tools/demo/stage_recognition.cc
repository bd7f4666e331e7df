// SPDX-License-Identifier: Apache-2.0
// Recognises ZeRO stages with one structure agent for each communicator, from its collectives alone, as
// a job does.
#include "tools/demo/demo_steps.h"

#include <map>

#include "src/policy/structure_inference.h"

namespace dynamiccl {

std::vector<int64_t> RecogniseStages(const Policy& policy, const SectionCalls& section) {
  std::vector<int64_t> recognised(kZeroStages);
  std::map<uint32_t, StructureAgent> agents;  // by communicator
  for (const TraceCall& call : section.calls) {
    if (static_cast<int>(call.issued.call.collective) >= kTunableCollectives) continue;
    StructureAgent& agent = agents.try_emplace(call.communicator, policy).first->second;
    ++recognised[static_cast<size_t>(agent.Step(call.issued.call).stage)];
  }
  return recognised;
}

}  // namespace dynamiccl
