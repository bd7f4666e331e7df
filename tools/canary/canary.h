// SPDX-License-Identifier: Apache-2.0
// Runs releases of NCCL on a described machine and compares each with the release in use: what each would do
// with one communicator of the job.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/canary/bisection.h"
#include "tools/canary/cell_runner.h"
#include "tools/canary/comparison.h"
#include "tools/canary/fidelity.h"
#include "tools/canary/known_issues.h"
#include "tools/canary/release_library.h"

namespace dynamiccl {

struct CanaryRequest {
  std::vector<DescribedMachine> machines;  // one for all nodes, or one for each node
  std::vector<ReleaseLibrary> releases;    // the one in use, then those to judge; at least two
  std::vector<int> ranks_of_nodes;
  std::vector<int> gpus;  // GPUs of a node's ranks, in the order of the ranks; empty: 0, 1, ...
  std::vector<uint64_t> bytes;
  std::vector<Collective> collectives = AllJudged();
  std::vector<Connecting> connecting;
  std::map<std::string, std::string> environment;
  std::string stack_kib;  // CellRequest::stack_kib
  bool seeks_remedies = true;
  bool bisects = false;
  int limit_s = 0;                 // seconds for a run of a judged release; 0: docs/canary.md says how many
  std::optional<Traffic> traffic;  // the user's own calls, to which `bytes` and `collectives` then belong
};

// The run of one release with its ranks connecting at one time (`connecting`), and how the run differs from
// that of the release in use.
struct JudgedCell {
  Connecting connecting = Connecting::kAtFirstCall;
  Cell cell;
  std::vector<Difference> differences;
};

// The releases that bring and end grave differences of the judged release. A failure (DifferenceKind::kEnd)
// has its own periods, because the releases after it often still have the other differences.
struct FaultPeriod {
  std::vector<DifferenceKind> kinds;
  Bisection releases;
};

// A variable and a value that remove every grave difference, no matter when the ranks connect.
struct Remedy {
  std::string variable;
  std::string value;
};

struct JudgedRelease {
  ReleaseLibrary library;
  std::vector<JudgedCell> cells;
  CanaryVerdict verdict = CanaryVerdict::kSame;
  std::vector<KnownIssue> issues;
  std::vector<Remedy> remedies;
  std::vector<std::string> tried;  // variables that were tried, such as "NCCL_PXN_DISABLE=1"
  bool bisected = false;
  // Results of the bisection among the cached releases, the failure first. Empty if the judged release is not
  // the newer one.
  std::vector<FaultPeriod> periods;
  // Holds what the release would change for the calls of CanaryRequest::traffic. Nothing without traffic, or
  // if one of the releases did not run all calls.
  std::optional<TrafficEffect> effect;
  std::string problem;  // why there is no verdict
};

struct CanaryAnswer {
  ReleaseLibrary in_use;
  std::vector<JudgedCell> in_use_cells;  // these have no differences
  std::vector<JudgedRelease> judged;
  std::optional<Fidelity> fidelity;  // agreement with the user's log; nothing without a log
};

// Runs every release of the request and judges it against the release in use. A grave difference counts only
// when a second run shows the same one. Three runs that all end differently give no verdict, and neither does
// a release in use that fails itself. `says` receives one line of progress for each run. It is an error when
// the release in use cannot be run on this machine.
Result<CanaryAnswer> RunCanary(const CellRunner& runner, const CanaryRequest& request,
                               const std::vector<KnownIssue>& known,
                               const std::function<void(const std::string&)>& says);

const char* Name(Connecting connecting);

// Returns override rules (docs/formats/override_rules.md) that force the choices of the release in use
// wherever `judged` chooses otherwise. Empty when all choices are equal.
std::string RulesThatRestore(const CanaryAnswer& answer, const JudgedRelease& judged, int ranks, int nodes);

}  // namespace dynamiccl
