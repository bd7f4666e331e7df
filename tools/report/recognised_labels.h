// SPDX-License-Identifier: Apache-2.0
// Labels the calls of a trace with roles, phases and ZeRO stages that a policy's LSTM recognises, if the
// program did not label its calls itself.
#pragma once

#include <string>

#include "src/policy/policy.h"
#include "tools/report/report.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Labels the calls of a section (the recording of one process) that has no labels. As in a running job,
// `policy` predicts each call's role from the calls before it, so the first calls stay unknown. Returns
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

// Labels the first section of each trace whose program set no labels. A report takes stages and roles from
// that section. The first policy among the inputs recognises them; without one, the decisions that the job
// recorded; else the policy in the file `fallback` (empty: none). NamedTrace::recognised_by then names what
// recognised them.
Status RecogniseUnlabelled(const std::string& fallback, ReportInputs& inputs);

}  // namespace dynamiccl
