// SPDX-License-Identifier: Apache-2.0
// Roles, phases and stages of traces whose program did not say them, as a policy's LSTM recognises them from
// the calls.
#pragma once

#include <string>

#include "src/policy/policy.h"
#include "tools/report/report.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Labels the calls of a section that has no labels, as `policy` recognises them in a job that is in progress:
// what a call is for is said before it is seen, so the first calls stay unknown. Returns false, and changes
// nothing, where some call is labelled.
bool LabelByPolicy(const Policy& policy, TraceSection& section);

// Labels all traces without labels by the first policy among the inputs, else by the one in the file
// `fallback` (empty: none), and notes in NamedTrace::recognised_by whose words they are.
Status RecogniseUnlabelled(const std::string& fallback, ReportInputs& inputs);

}  // namespace dynamiccl
