// SPDX-License-Identifier: Apache-2.0
// Labels traces whose program did not label its calls with roles, phases and stages, as the LSTM of a policy
// recognises them.
#pragma once

#include <string>

#include "src/policy/policy.h"
#include "tools/report/report.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Labels the calls of a section that has no labels. As in a running job, `policy` predicts each call's role
// from the calls before it, so the first calls stay unknown. Returns false, and changes nothing, if some call
// is labelled.
bool LabelByPolicy(const Policy& policy, TraceSection& section);

// Labels the calls of a section that has no labels by what the job's own policy recognised when it decided
// them, as Decision records say. Calls that NCCL did not ask about stay unlabelled. Returns false, and
// changes nothing, if some call is labelled or nothing was recognised.
bool LabelByDecisions(TraceSection& section);

// Labels every section without labels: by the policy in the file `named` (empty: none is named), else by the
// job's own decisions, else by the policy in the file `fallback` (empty: none). Returns who recognised the
// first section; empty if its labels are the program's or it has none.
Result<std::string> RecogniseSections(const std::string& named, const std::string& fallback, Trace& trace);

// Labels the first section of each trace without labels. A report takes stages and roles from that section.
// The first policy among the inputs recognises them; without one, the job's own policy as its recorded
// decisions show; else the policy in the file `fallback` (empty: none). NamedTrace::recognised_by names the
// recogniser.
Status RecogniseUnlabelled(const std::string& fallback, ReportInputs& inputs);

}  // namespace dynamiccl
