// SPDX-License-Identifier: Apache-2.0
// What this process keeps for all of its communicators: it owns the parts and wires them together. The parts
// know nothing of the whole, and functions that need one or two of them are handed these.
#pragma once

#include <memory>

#include "plugin/runtime/adaptive_tables.h"
#include "plugin/runtime/communicator_registry.h"
#include "plugin/runtime/job_files.h"
#include "plugin/runtime/job_settings.h"
#include "plugin/runtime/loaded_choices.h"
#include "plugin/runtime/meeting_places.h"
#include "plugin/runtime/plugin_offers.h"
#include "plugin/runtime/reported_memory.h"
#include "plugin/times/collective_times.h"

namespace dynamiccl {

// Made by the process's first NCCL call and never destroyed (process_life.h). Any thread; each part says how
// it is shared.
class ProcessRuntime {
 public:
  // Reads the environment and the files that it names. What is wrong there is logged, and changes this
  // process to one that takes no part.
  ProcessRuntime();
  ProcessRuntime(const ProcessRuntime&) = delete;
  ProcessRuntime& operator=(const ProcessRuntime&) = delete;

  const JobSettings& settings() const { return settings_; }
  const LoadedChoices& choices() const { return choices_; }
  CommunicatorRegistry& communicators() { return communicators_; }
  MeetingPlaces& meetings() { return meetings_; }
  AdaptiveTables& tables() { return tables_; }
  PluginOffers& plugins() { return plugins_; }
  JobFiles& files() { return files_; }
  ReportedMemory& memory() { return memory_; }
  // Null unless collectives are to be timed.
  CollectiveTimes* times() const { return times_.get(); }
  // As JobFiles has it.
  Recorder* recorder() const { return files_.recorder(); }
  // Whether traces or metrics hold single calls: the times of their issue, and what decides them.
  bool accounts_for_calls() const { return AccountsForCalls(settings_); }
  // Counts decisions for which no communicator is known. Any thread counts.
  CallLedger& unattributed_ledger() { return unattributed_ledger_; }

  // Opens the files of this process at its first communicator, whose rank is `rank`, and has what was learnt
  // saved when the process ends.
  void OpenFiles(int rank);
  // Has the guard of this process's server watch a communicator: fills in what the process knows, the store,
  // the recorder, and whether all calls are timed. False where this process does not lead, or another rank of
  // it is watched.
  bool GuardTable(GuardSubject subject);
  // The communicator was destroyed, aborted or revoked: frees every thread that waits for a verdict about it.
  void Release(Communicator& communicator);
  // At the end of the process.
  void SaveAtExit() noexcept;

 private:
  static MetricsSource Metrics();
  void StartTiming();

  const JobSettings settings_;
  MadeEntries made_entries_;
  const LoadedChoices choices_;
  CommunicatorRegistry communicators_;
  std::unique_ptr<CollectiveTimes> times_;
  PluginOffers plugins_;
  JobFiles files_;
  AdaptiveTables tables_;
  MeetingPlaces meetings_;
  CallLedger unattributed_ledger_;
  ReportedMemory memory_;
};

}  // namespace dynamiccl
