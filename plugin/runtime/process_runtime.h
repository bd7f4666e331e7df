// SPDX-License-Identifier: Apache-2.0
// Holds what this process keeps for all of its communicators. The runtime owns the parts and connects them. A
// part does not know the runtime; its functions get only those other parts that they need.
#pragma once

#include <memory>

#include "plugin/runtime/adaptive_tables.h"
#include "plugin/runtime/communicator_registry.h"
#include "plugin/runtime/job_files.h"
#include "plugin/runtime/job_settings.h"
#include "plugin/runtime/loaded_choices.h"
#include "plugin/runtime/plugin_offers.h"
#include "plugin/runtime/process_memory.h"
#include "plugin/runtime/rendezvous_points.h"
#include "plugin/times/collective_times.h"

namespace dynamiccl {

// Made by the process's first NCCL call and never destroyed (runtime_instance.h). Any thread; each part
// documents how it is shared.
class ProcessRuntime {
 public:
  // Reads the environment and the files that the environment names. Errors are logged, and then this process
  // takes no part in choosing.
  ProcessRuntime();
  ProcessRuntime(const ProcessRuntime&) = delete;
  ProcessRuntime& operator=(const ProcessRuntime&) = delete;

  const JobSettings& settings() const { return settings_; }
  const LoadedChoices& choices() const { return choices_; }
  CommunicatorRegistry& communicators() { return communicators_; }
  RendezvousPoints& rendezvous() { return rendezvous_; }
  AdaptiveTables& tables() { return tables_; }
  PluginOffers& plugins() { return plugins_; }
  JobFiles& files() { return files_; }
  ProcessMemory& memory() { return memory_; }
  // Null unless collectives are to be timed.
  CollectiveTimes* times() const { return times_.get(); }
  // Returns the recorder of the job's files (JobFiles::recorder).
  Recorder* recorder() const { return files_.recorder(); }
  // Returns true if traces or metrics need single calls: when they are issued, and what decides them.
  bool accounts_for_calls() const { return AccountsForCalls(settings_); }
  // Returns true if something reads how short of memory this process is: a trace, metrics or rules.
  bool samples_memory() const { return samples_memory_; }
  // Counts decisions whose communicator is not known. Any thread may count.
  CallLedger& unattributed_ledger() { return unattributed_ledger_; }

  // Opens this process's files at its first communicator, in which its rank is `rank`. Also registers the
  // saving of results at the end of the process.
  void OpenFiles(int rank);
  // Makes this process's server guard the tables of a communicator. Adds what the process knows to `subject`:
  // the store, the recorder, and whether all calls are timed. Returns false if this process does not lead, or
  // if another of its ranks is watched already.
  bool GuardTable(GuardSubject subject);
  // Releases every thread that waits for a verdict about a communicator that was destroyed, aborted or
  // revoked.
  void Release(Communicator& communicator);
  // Saves results at the end of the process.
  void SaveAtExit() noexcept;

 private:
  static MetricsSource Metrics();
  // Returns the live values that this process proposes on the communicators that it leads. Any thread.
  AgreedValues ValuesOfThisProcess() const;
  void StartTiming();

  const JobSettings settings_;
  ComputedEntries computed_entries_;
  const LoadedChoices choices_;
  CommunicatorRegistry communicators_;
  const bool samples_memory_;
  ProcessMemory memory_;
  std::unique_ptr<CollectiveTimes> times_;
  PluginOffers plugins_;
  JobFiles files_;
  AdaptiveTables tables_;
  RendezvousPoints rendezvous_;
  CallLedger unattributed_ledger_;
};

}  // namespace dynamiccl
