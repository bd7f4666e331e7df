// SPDX-License-Identifier: Apache-2.0
// What a recorded run did, in the numbers that its report shows: by key, by ZeRO stage, and by table version.
// Of the first process of a trace: all ranks issue the same collectives and decide alike.
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

struct RunKey {
  int n_ranks = 0;
  int n_nodes = 0;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total

  friend auto operator<=>(const RunKey&, const RunKey&) = default;
};

struct RunKeyAccount {
  RunKey key;
  int64_t calls = 0;
  std::map<DecidedBy, int64_t> decided;                       // of the calls that a tuner was asked about
  std::vector<std::pair<CollectiveConfig, int64_t>> configs;  // what was answered, in order of appearance
  CollectiveConfig choice;  // the last answer that was no trial and no sample
  // Timed calls, microseconds: left to NCCL (samples among them), and at a choice that was no trial.
  Timing default_us;
  Timing ours_us;

  bool decided_any() const { return !decided.empty(); }
};

// Point-to-point calls, about which no tuner is asked, are left out.
std::vector<RunKeyAccount> KeysOf(const SectionCalls& section);

// Calls of one collective in one role of one labelled stage.
struct StageRow {
  ZeroStage stage = ZeroStage::kUnknown;
  Collective collective = Collective::kAllReduce;
  Role role = Role::kUnknown;
  int64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
};

struct StageAccount {
  std::vector<StageRow> rows;
  std::map<ZeroStage, int64_t> steps;  // in which the stage issued calls; 0: the program marked none
};

StageAccount StagesOf(const SectionCalls& section);

// From `call_number` on, a communicator's calls were decided by another version of its table.
struct TableVersion {
  int64_t since_ns = 0;  // from the first call of the trace
  uint32_t communicator = 0;
  uint64_t call_number = 0;
  uint8_t version = 0;               // its low 8 bits, as traces hold them
  std::vector<std::string> changes;  // "AllReduce of 1M: Ring LL x2 in place of left to NCCL"
};

// In order of time. The version that a communicator begins with is no change.
std::vector<TableVersion> VersionsOf(const SectionCalls& section);

}  // namespace dynamiccl
