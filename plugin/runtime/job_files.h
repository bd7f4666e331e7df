// SPDX-License-Identifier: Apache-2.0
// The files that this process writes and reads for its job: the trace, the metrics, the decisions for a later
// run, and the site store. (The decision log is the tuner sessions': decision_log.h.)
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

// Owned by the process's runtime; any thread. A file that cannot be opened or written is logged once, and the
// job goes on without it.
class JobFiles {
 public:
  // All three outlive this object.
  JobFiles(const JobSettings& settings, const LoadedChoices& choices, const MadeEntries& made)
      : settings_(settings), choices_(choices), made_(made) {}

  // Null before Open, without DYNAMICCL_TRACE, and when the trace cannot be written. On the path of each
  // call: one atomic load.
  Recorder* recorder() const { return recorder_.load(std::memory_order_acquire); }
  // Opens the trace, and has the metrics written every few seconds, where they are asked for. `rank` is that
  // of the first communicator; it names the files where the launcher says no rank. The first call does it,
  // and returns true; later ones do nothing.
  bool Open(int rank, MetricsSource (*metrics)());
  // Of this process in its job, once files are open; -1: unknown.
  int rank() const { return rank_; }
  // Writes DYNAMICCL_DECISIONS, in a run that is to be repeated, on rank 0. Each call writes the whole file.
  void SaveDecisions() noexcept;
  // What earlier runs at this site have learnt, as the first call finds it. Null without
  // DYNAMICCL_SITE_STORE; empty when the file cannot be read.
  std::shared_ptr<const SiteStore> site_store();

 private:
  void OpenTrace();

  const JobSettings& settings_;
  const LoadedChoices& choices_;
  const MadeEntries& made_;
  std::atomic<Recorder*> recorder_{nullptr};  // never closed but at exit, never freed
  std::atomic<int> rank_{-1};
  std::mutex mutex_;  // guards what follows
  bool opened_ = false;
  std::shared_ptr<const SiteStore> site_store_;
};

}  // namespace dynamiccl
