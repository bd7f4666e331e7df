// SPDX-License-Identifier: Apache-2.0
// The numbers of a recorded run that its report shows: by key, by ZeRO stage and by table version. They are
// counted while the calls of the first process of a trace pass in order of issue, since all ranks issue the
// same collectives and decide alike.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/decided_by.h"
#include "src/collective/role.h"
#include "tools/report/duration_quantiles.h"
#include "tools/report/timing.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// The key by which a report counts calls. It is coarser than a decision key: communicators with equal numbers
// of ranks and nodes are not distinguished.
struct RunKey {
  int n_ranks = 0;
  int n_nodes = 0;
  Collective collective = Collective::kAllReduce;
  // Size of one call as NCCL counts it over all ranks.
  uint64_t bytes = 0;

  friend auto operator<=>(const RunKey&, const RunKey&) = default;
};

// The calls of one key: who decided them, which configs were chosen, and how long the timed calls took.
struct RunKeyAccount {
  RunKey key;
  int64_t calls = 0;
  // Number of calls by who decided them, among the calls about which NCCL asked a tuner.
  std::map<DecidedBy, int64_t> decided;
  // The chosen configs with the number of calls that got each, in order of appearance.
  std::vector<std::pair<CollectiveConfig, int64_t>> configs;
  // The last config that was chosen for use. Trials and samples, which only measure, do not count.
  CollectiveConfig choice;
  // Times in microseconds of the calls that were left to NCCL, including those left to it only to compare.
  Timing default_us;
  // Times in microseconds of the calls with a choice of DynamICCL. Calls whose config was only tried are left
  // out.
  Timing ours_us;

  // True if NCCL asked a tuner about any of these calls.
  bool decided_any() const { return !decided.empty(); }
};

// Counts the calls of each key. Point-to-point calls are left out, since NCCL asks no tuner about them.
class KeyCounts {
 public:
  // Counts a call on a communicator that spans `nodes` nodes.
  void Take(const TraceCall& call, int nodes);
  // True if all calls must be taken again before Accounts is called: BeginAgain, then TakeAgain for each
  // call.
  bool needs_second_pass() const;
  void BeginAgain();
  void TakeAgain(const TraceCall& call, int nodes);
  // Returns the accounts, sorted by key.
  std::vector<RunKeyAccount> Accounts() const;

 private:
  // The account of one key without its timings, which follow from the durations.
  struct Counted {
    RunKeyAccount account;
    DurationQuantiles by_default;
    DurationQuantiles ours;
  };
  // The durations among which the call counts; null if it counts in none.
  static DurationQuantiles* DurationsFor(const TraceCall& call, Counted& counted);

  std::map<RunKey, Counted> keys_;
};

// The calls of one collective with the same labels: role, phase and ZeRO stage.
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

// All rows about a run's ZeRO stages, sorted by stage, collective, role and phase.
struct StageAccount {
  std::vector<StageRow> rows;
  // Number of marked training steps in which the ZeRO stage issued calls. A stage without marked steps is
  // absent.
  std::map<ZeroStage, int64_t> steps;
};

// Counts calls by the labels that the program gave them.
class StageCounts {
 public:
  void Take(const TraceCall& call);
  StageAccount Account() const;

 private:
  std::map<std::tuple<ZeroStage, Collective, Role, Phase>, StageRow> rows_;
  // The steps of each stage in order of issue. If a step comes back after a different
  // step, it is listed again.
  std::map<ZeroStage, std::vector<int64_t>> steps_;
};

// A change of decision table: from `call_number` on, another version decided the calls of a communicator.
struct TableVersion {
  // Nanoseconds since the first call of the trace.
  int64_t since_ns = 0;
  uint32_t communicator = 0;
  uint64_t call_number = 0;
  // The table version. Traces hold its low 8 bits; the others follow from the versions before it, if the
  // trace has the job from its beginning (`counted`). Else they are 0.
  uint32_t version = 0;
  bool counted = true;
  // The choices that changed, as texts such as "AllReduce of 1M: Ring LL x2 in place of left to NCCL".
  std::vector<std::string> changes;
};

// Returns the reason of a version among those that a log states (VersionReasons); null if it states none, or
// if several versions may be meant.
const std::string* ReasonOf(const TableVersion& version, const std::map<uint32_t, std::string>& reasons);

// Finds the changes of table version. The version with which a communicator begins is not a change.
class VersionList {
 public:
  // `counted`: whether the trace lost no records, so that it has the calls of all versions.
  explicit VersionList(bool counted) : counted_(counted) {}
  // Records a change if the call was decided by another table version than the previous call of its
  // communicator, which spans `nodes` nodes. A call whose config the user pinned has no version.
  void Take(const TraceCall& call, int nodes);
  // The changes in order of time.
  const std::vector<TableVersion>& versions() const { return versions_; }

 private:
  void NoteChoice(const TraceCall& call, int nodes);

  bool counted_;
  std::optional<int64_t> begin_ns_;  // issue of the first call
  // The current table version of each communicator.
  std::map<uint32_t, uint32_t> current_;
  // For each communicator the index in versions_ of its latest change of version.
  std::map<uint32_t, size_t> latest_;
  // The last choice for each communicator and key.
  std::map<std::pair<uint32_t, RunKey>, CollectiveConfig> choices_;
  std::vector<TableVersion> versions_;
};

}  // namespace dynamiccl
