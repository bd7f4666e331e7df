// SPDX-License-Identifier: Apache-2.0
// Labels the calls of a trace with roles, phases and ZeRO stages that a policy's LSTM recognises, if the
// program did not label its calls itself.
#pragma once

#include <map>
#include <string>

#include "src/base/status.h"
#include "src/policy/policy.h"
#include "src/policy/structure_inference.h"
#include "traces/format/record_views.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Named as the recogniser if a trace's labels come from the decisions that the job itself recorded.
inline constexpr const char* kJobsOwnPolicy = "the job's own policy";

// True for a call of a tunable collective that the program labelled.
bool IsLabelledCall(const TraceRecord& record);

// Labels a call of a tunable collective as the tuner's answer says. Does not seal the record.
void LabelByDecision(const DecisionView& decision, TraceRecord& record);

// Labels the calls of one section, which are passed in order, by a policy's LSTM. As in a running job, the
// roles of all calls of a group are predicted from the calls before the group, so the first calls stay
// unknown.
class PolicyLabeller {
 public:
  // `policy` must outlive this object.
  explicit PolicyLabeller(const Policy& policy) : policy_(policy) {}
  // Labels a call of a tunable collective, and passes over others. Does not seal the record.
  void Label(const CommunicatorInfo& communicator, TraceRecord& record);

 private:
  struct Recognition {
    StructureAgent agent;
    RecognisedStructure before_group;  // what the agent had recognised before the present group
  };

  const Policy& policy_;
  std::map<uint32_t, Recognition> recognitions_;  // by the section's own number of the communicator
};

// Labels the calls of a section (the recording of one process) that has no labels (PolicyLabeller). Returns
// false, and changes nothing, if some call is labelled.
bool LabelByPolicy(const Policy& policy, TraceSection& section);

// Labels the calls of a section (the recording of one process) that has no labels. The labels are what the
// job's own policy recognised when it decided the calls, as Decision records say. A call about which NCCL
// asked no tuner stays unlabelled. Returns false, and changes nothing, if some call is labelled or nothing
// was recognised.
bool LabelByDecisions(TraceSection& section);

// Labels every section without labels by the first source that exists: the policy file `named`, the decisions
// that the job recorded, or the policy file `fallback`. An empty path means that there is no such file.
// Returns the source for the first section; empty if the program labelled that section or it stays without
// labels.
Result<std::string> RecogniseSections(const std::string& named, const std::string& fallback, Trace& trace);

}  // namespace dynamiccl
