// SPDX-License-Identifier: Apache-2.0
// Finds public reports of NCCL faults that make jobs hang in the same way as this job.
#pragma once

#include <vector>

#include "tools/canary/known_issues.h"
#include "tools/hang/hang_findings.h"

namespace dynamiccl {

// Returns the reports that fit this hang: by the release of all processes, by where the ranks wait, and by
// how the ranks are placed on nodes. A report does not fit if the traces lack one of these facts. Traces do
// not show processors and GPUs; a report's `where` names them for the reader to compare.
std::vector<KnownIssue> KnownHangs(const std::vector<KnownIssue>& known, const JobCalls& job,
                                   const HangDiagnosis& diagnosis);

}  // namespace dynamiccl
