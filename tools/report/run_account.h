// SPDX-License-Identifier: Apache-2.0
// The numbers of a recorded run that its report shows: by key, by ZeRO stage and by table version. All
// functions read the first process of a trace, since all ranks issue the same collectives and make the same
// decisions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/decided_by.h"
#include "src/collective/role.h"
#include "tools/report/timing.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// The key under which a report counts calls. It is coarser than a decision key: communicators of equal shape
// have the same key.
struct RunKey {
  int n_ranks = 0;
  int n_nodes = 0;
  Collective collective = Collective::kAllReduce;
  // NCCL's total bytes of one call.
  uint64_t bytes = 0;

  friend auto operator<=>(const RunKey&, const RunKey&) = default;
};

// Calls of one key: who decided, what was chosen, and how long timed calls took.
struct RunKeyAccount {
  RunKey key;
  int64_t calls = 0;
  // Calls by decider, among those for which NCCL asked a tuner.
  std::map<DecidedBy, int64_t> decided;
  // Answers and their number of calls, in order of appearance.
  std::vector<std::pair<CollectiveConfig, int64_t>> configs;
  // The last answer that was neither a trial nor a sample.
  CollectiveConfig choice;
  // Times of calls that were left to NCCL, samples included; microseconds.
  Timing default_us;
  // Times of calls with a choice of DynamICCL, in microseconds. Trials are left out.
  Timing ours_us;

  // Whether NCCL asked a tuner about any of these calls.
  bool decided_any() const { return !decided.empty(); }
};

// Accounts of all keys, sorted by key. Point-to-point calls are left out, since NCCL asks no tuner about
// them.
std::vector<RunKeyAccount> KeysOf(const SectionCalls& section);

// Calls of one collective in one role and phase of one labelled stage.
struct StageRow {
  ZeroStage stage = ZeroStage::kUnknown;
  Phase phase = Phase::kUnknown;
  Collective collective = Collective::kAllReduce;
  Role role = Role::kUnknown;
  int64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
};

// All rows of a run, sorted by stage, collective, role and phase.
struct StageAccount {
  std::vector<StageRow> rows;
  // Number of marked steps in which the stage issued calls. A stage whose steps were not marked is absent.
  std::map<ZeroStage, int64_t> steps;
};

// Counts the calls by the labels that the program gave.
StageAccount StagesOf(const SectionCalls& section);

// A change of table: from `call_number` on, a communicator's calls were decided by another version.
struct TableVersion {
  // Nanoseconds since the first call of the trace.
  int64_t since_ns = 0;
  uint32_t communicator = 0;
  uint64_t call_number = 0;
  // The low 8 bits of the version, as traces hold them.
  uint8_t version = 0;
  // Changed choices, such as "AllReduce of 1M: Ring LL x2 in place of left to NCCL".
  std::vector<std::string> changes;
};

// The changes in order of time. The version with which a communicator begins is not a change.
std::vector<TableVersion> VersionsOf(const SectionCalls& section);

}  // namespace dynamiccl
