// SPDX-License-Identifier: Apache-2.0
// Reads the files of one job and keeps what shows which settings are in effect: NCCL's logs, profiler traces
// of PyTorch, traces and decision logs of DynamICCL, rules, and environments.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/collective/coverage.h"
#include "src/collective/decided_by.h"
#include "src/decision/override_rules.h"
#include "tools/receipt/asked_setting.h"
#include "tools/receipt/nccl_log.h"

namespace dynamiccl {

struct EvidenceFile {
  std::string path;
  std::string kind;  // "NCCL log", "trace of DynamICCL", ...
};

// Kernels of NCCL with one name in a profiler trace.
struct SeenKernels {
  std::string name;
  uint64_t count = 0;
  LogLine line;
};

// A decision of DynamICCL's tuner, with the values that rules are matched against. Fields that the file does
// not contain are empty.
struct SeenDecision {
  RuleSubject subject;
  DecidedBy decided_by = DecidedBy::kNccl;
};

// The metrics of one process (docs/telemetry.md). All ranks decide alike, so one process stands for the job.
struct CountedCalls {
  LogLine line;        // the file, with a summary of it
  std::string mode;    // "frozen"
  std::string policy;  // hash of the policy that was loaded; empty: none
  std::map<std::pair<Collective, Coverage>, uint64_t> calls;
  std::map<std::pair<Collective, DecidedBy>, uint64_t> decisions;
  // Calls that were timed, by the configuration that NCCL's profiler interface reported.
  std::vector<ChosenCalls> timed;

  uint64_t CallsOf(Coverage coverage) const;
  uint64_t DecisionsBy(DecidedBy who) const;
  uint64_t n_decisions() const;
};

struct RulesFile {
  std::string path;
  OverrideRules rules;
};

struct Evidence {
  std::vector<EvidenceFile> files;
  NcclLog log;
  std::vector<SeenKernels> kernels;
  // Traces and decision logs of DynamICCL, and where the first of each is.
  std::vector<SeenDecision> decisions;
  std::optional<LogLine> trace;  // a trace that the job recorded
  std::optional<LogLine> decision_log;
  uint64_t pinned_calls = 0;  // of traces: NCCL_ALGO, NCCL_PROTO or the call itself names the configuration
  std::optional<CountedCalls> counted;   // of the first process that counted a call
  std::optional<LogLine> nccl_log_file;  // a file that NCCL_DEBUG_FILE named, known to `dynamiccl run` alone
  bool over_hostccl = false;             // known to `dynamiccl run`; no file shows it
  bool knows_nodes = false;              // every decision's numbers of ranks and nodes are known (trace)
  bool knows_structure = false;          // the files contain roles, phases or stages that a policy recognised
  bool knows_memory = false;             // the files contain agreed levels of memory pressure (decision log)
  std::vector<RulesFile> rules;
  std::vector<AskedSetting> asked;

  // NCCL's release, where the files agree on one; and the line that names it.
  const LoggedRelease* release() const { return log.releases.size() == 1 ? log.releases.data() : nullptr; }
  // Return how many calls `who` decided, and how many were decided at all. Decisions in traces and logs are
  // counted; without any, the numbers are those of the metrics.
  uint64_t CountOf(DecidedBy who) const;
  uint64_t n_decisions() const;
  // Returns the choices that NCCL logged. Without any, returns those of the timed calls.
  const std::vector<ChosenCalls>& Choices() const;
};

// Reads one more file. What NCCL read is not added to `asked`: AskWhatWasRead does that after the last file.
Status AddEvidence(const std::string& path, Evidence& evidence);
// Adds the variables that NCCL read to `asked`: somebody asked for them. Those that are there already stay.
void AskWhatWasRead(Evidence& evidence);

// Defined in evidence_metrics.cc. The first returns true if a file that begins with `head` holds DynamICCL's
// metrics. The second adds the metrics of one process; `place` names their file. Lines that make no sense are
// left out.
bool LooksLikeMetrics(std::string_view head);
void AddMetrics(const std::string& place, std::string_view text, Evidence& evidence);

// Reads all files; the kind of each follows from its content. What the files show to have been asked (read
// variables, environments) is in `asked`, after `also_asked`. An error names the file.
Result<Evidence> ReadEvidence(const std::vector<std::string>& paths,
                              const std::vector<AskedSetting>& also_asked);

}  // namespace dynamiccl
