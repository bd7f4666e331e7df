// SPDX-License-Identifier: Apache-2.0
// Publicly reported faults of NCCL releases: which releases have a fault, what helps, and how the host side
// shows it, or why the host side cannot show it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/real_nccl/nccl_release.h"
#include "tools/canary/comparison.h"

namespace dynamiccl {

// The function or phase of NCCL in which the ranks of a job wait when the fault makes the job hang.
enum class StandsIn {
  kNothing,  // the fault is no hang
  kInit,     // all ranks are making one communicator
  kCall,     // a rank is inside a call from which others returned
};

struct KnownIssue {
  std::string id;     // "NVIDIA/nccl#1946"
  std::string title;  // what happens
  std::string url;
  real_nccl::NcclRelease since;                 // the first release that has the fault
  std::optional<real_nccl::NcclRelease> until;  // the first release without the fault again
  std::vector<DifferenceKind> shows_as;         // empty: it is `unjudged`
  // Why no run without the machine can show the fault, for example because it is in device code. Empty: a run
  // can show it.
  std::string unjudged;
  // A text that the difference, or a warning of the run (Difference::warnings), contains for the judged
  // release and not for the release in use. Empty: any difference of the right kind counts.
  std::string text;
  bool logged = false;  // `text` is a line of NCCL's own log, so a log that holds it shows the fault
  std::vector<int> architectures;  // of GPUs that have the fault; empty: any
  std::string variable;            // a variable that a job must set to have the fault; empty: none
  std::string topology;            // a text that the topology of one node must hold; may be empty
  std::string where;               // the machines and jobs that have the fault, in words
  std::string remedy;              // may be empty
  StandsIn stands_in = StandsIn::kNothing;
  bool unlike_nodes = false;  // the job hangs only where nodes hold unlike numbers of ranks

  bool Has(const real_nccl::NcclRelease& release) const {
    return release >= since && (!until || release < *until);
  }
};

// Reads the installation's table (tools/canary/known_issues.json). An error names the wrong entry.
Result<std::vector<KnownIssue>> ReadKnownIssues(const Installation& installation);
Result<std::vector<KnownIssue>> ParseKnownIssues(const std::string& text);

// Returns one sentence with the report's name, title, affected machines, remedy and address. `evidence`
// follows the title, for example ", as nccl.log:12 says"; it may be empty.
std::string Describe(const KnownIssue& issue, const std::string& evidence);

// Returns the issues that a job with these variables can have on these machines.
std::vector<KnownIssue> IssuesOfJob(const std::vector<KnownIssue>& known,
                                    const std::map<std::string, std::string>& environment,
                                    const std::vector<DescribedMachine>& machines);

// Returns the issues that `judged` has and the release in use does not have, that apply to GPUs of the
// architecture, and that match one of the differences or are unjudged. Issues that `judged` has fixed are
// left out.
std::vector<KnownIssue> IssuesFor(const std::vector<KnownIssue>& known, const real_nccl::NcclRelease& in_use,
                                  const real_nccl::NcclRelease& judged, int architecture,
                                  const std::vector<Difference>& differences);

// Returns the issues that the release has and that a job's log shows. `says` tells whether a line of the log
// contains a text.
std::vector<KnownIssue> IssuesInLog(const std::vector<KnownIssue>& known,
                                    const real_nccl::NcclRelease& release,
                                    const std::function<bool(const std::string& text)>& says);

}  // namespace dynamiccl
