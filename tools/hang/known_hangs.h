// SPDX-License-Identifier: Apache-2.0
// Public reports of faults of NCCL by which jobs stand still as this one does.
#pragma once

#include <vector>

#include "tools/canary/known_issues.h"
#include "tools/hang/hang_findings.h"

namespace dynamiccl {

// The reports that fit by the release of all processes, by where the ranks stand, and by how they lie on
// nodes. A fact that the traces do not hold (release, host of a rank, a rank without a trace) fits no report.
// Processors and GPUs are not in a trace: the report's `where` names them, and the reader compares.
std::vector<KnownIssue> KnownHangs(const std::vector<KnownIssue>& known, const JobCalls& job,
                                   const HangDiagnosis& diagnosis);

}  // namespace dynamiccl
