// SPDX-License-Identifier: Apache-2.0
// Reads the files of one job and keeps what shows which settings are in effect: NCCL's logs, profiler traces
// of PyTorch, traces and decision logs of DynamICCL, rules, and environments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
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
  bool knows_nodes = false;  // every decision's numbers of ranks and nodes are known (trace), not its role
  std::vector<RulesFile> rules;
  std::vector<AskedSetting> asked;

  // NCCL's release, where the files agree on one; and the line that names it.
  const LoggedRelease* release() const { return log.releases.size() == 1 ? log.releases.data() : nullptr; }
  uint64_t CountOf(DecidedBy who) const;
};

// Reads all files; the kind of each follows from its content. What the files show to have been asked (read
// variables, environments) is in `asked`, after `also_asked`. An error names the file.
Result<Evidence> ReadEvidence(const std::vector<std::string>& paths,
                              const std::vector<AskedSetting>& also_asked);

}  // namespace dynamiccl
