// SPDX-License-Identifier: Apache-2.0
// Reads the files of one job and keeps the facts that show which settings are in effect. The files are NCCL's
// logs, profiler traces of PyTorch, traces, metrics and decision logs of DynamICCL, rules, and environments.
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

// All kernels of NCCL that have the same name in a profiler trace.
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
  // The calls that were timed. Their configs are those that NCCL's profiler interface reported.
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
  // Decisions from traces and decision logs. `trace` and `decision_log` name the first such file.
  std::vector<SeenDecision> decisions;
  std::optional<LogLine> trace;  // a trace that the job recorded
  std::optional<LogLine> decision_log;
  uint64_t pinned_calls = 0;  // in traces: NCCL_ALGO, NCCL_PROTO or the call itself names the config
  std::optional<CountedCalls> counted;   // of the first process that counted a call
  std::optional<LogLine> nccl_log_file;  // a file that NCCL_DEBUG_FILE named, known to `dynamiccl run` alone
  bool over_hostccl = false;             // from a trace; without a trace, from `dynamiccl run`
  bool knows_nodes = false;              // every decision's numbers of ranks and nodes are known (trace)
  bool knows_structure = false;          // the files contain roles, phases or stages that a policy recognised
  bool knows_memory = false;             // the files contain agreed levels of memory pressure (decision log)
  std::vector<RulesFile> rules;
  std::vector<AskedSetting> asked;

  // NCCL's release and the line that names it. Null if the files name none or several.
  const LoggedRelease* release() const { return log.releases.size() == 1 ? log.releases.data() : nullptr; }
  // CountOf returns how many calls `who` decided, n_decisions how many were decided in total. They count the
  // decisions in traces and decision logs; without such files they use the metrics.
  uint64_t CountOf(DecidedBy who) const;
  uint64_t n_decisions() const;
  // Returns the choices that NCCL logged. If it logged none, returns those of the timed calls.
  const std::vector<ChosenCalls>& Choices() const;
};

// Reads one more file. The variables that NCCL read are not yet added to `asked`; call AskWhatWasRead after
// the last file.
Status AddEvidence(const std::string& path, Evidence& evidence);
// Adds each variable that NCCL read to `asked`, unless `asked` has the variable already.
void AskWhatWasRead(Evidence& evidence);

// Defined in evidence_metrics.cc. LooksLikeMetrics returns true if a file that begins with `head` holds
// DynamICCL's metrics. AddMetrics adds the metrics of one process, whose file is `place`; lines that cannot
// be parsed are left out.
bool LooksLikeMetrics(std::string_view head);
void AddMetrics(const std::string& place, std::string_view text, Evidence& evidence);

// Reads all files, whose kinds follow from their content. In the result, `asked` has the settings of
// `also_asked`, followed by those of environments and those that NCCL read. An error names the file.
Result<Evidence> ReadEvidence(const std::vector<std::string>& paths,
                              const std::vector<AskedSetting>& also_asked);

}  // namespace dynamiccl
