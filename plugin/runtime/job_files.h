// SPDX-License-Identifier: Apache-2.0
// The files that this process writes and reads for its job: the trace, the metrics, the decisions for a later
// run, and the site store. (The tuner sessions write the decision log: decision_log.h.)
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "plugin/runtime/job_settings.h"
#include "plugin/runtime/loaded_choices.h"
#include "plugin/runtime/metrics_file.h"
#include "src/decision/site_store/site_store.h"
#include "traces/record/recorder.h"

namespace dynamiccl {

// Owned by the process's runtime; any thread. If a file cannot be opened or written, this is logged once and
// the job continues without the file.
class JobFiles {
 public:
  // All three arguments outlive this object.
  JobFiles(const JobSettings& settings, const LoadedChoices& choices, const ComputedEntries& computed)
      : settings_(settings), choices_(choices), computed_(computed) {}

  // Null before Open, without DYNAMICCL_TRACE, and if the trace cannot be written. Called for each call: one
  // atomic load.
  Recorder* recorder() const { return recorder_.load(std::memory_order_acquire); }
  // Opens the trace, and starts writing the metrics every few seconds, if the settings ask for them. `rank`
  // is the rank in the first communicator; it is used in file names if the launcher gives no rank. The first
  // call does this and returns true; later calls do nothing and return false.
  bool Open(int rank, MetricsSource (*metrics)());
  // Rank of this process in its job, known once files are open; -1: unknown.
  int rank() const { return rank_; }
  // On rank 0 of a run that is to be reproduced, writes the file DYNAMICCL_DECISIONS. Each call writes the
  // whole file.
  void SaveDecisions() noexcept;
  // Returns what earlier runs at this site have learnt; the first call reads it from the file. Null without
  // DYNAMICCL_SITE_STORE; empty if the file cannot be read.
  std::shared_ptr<const SiteStore> site_store();

 private:
  void OpenTrace();

  const JobSettings& settings_;
  const LoadedChoices& choices_;
  const ComputedEntries& computed_;
  std::atomic<Recorder*> recorder_{nullptr};  // closed only at exit, never freed
  std::atomic<int> rank_{-1};
  std::mutex mutex_;  // guards the members below
  bool opened_ = false;
  std::shared_ptr<const SiteStore> site_store_;
};

}  // namespace dynamiccl
