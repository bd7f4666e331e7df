// SPDX-License-Identifier: Apache-2.0
// The job's metrics (DYNAMICCL_METRICS): a file in the text format of Prometheus that is replaced every ten
// seconds and at the end of the process, as node_exporter's textfile collector expects. docs/telemetry.md
// describes the metrics.
#pragma once

#include <memory>
#include <string>

#include "plugin/runtime/call_ledger.h"
#include "plugin/runtime/computed_entries.h"
#include "plugin/runtime/guard_totals.h"
#include "plugin/times/collective_times.h"
#include "src/decision/agreed_values.h"

namespace dynamiccl {

// The values for one file.
struct MetricsSource {
  int rank = -1;  // -1: unknown
  std::string mode;
  std::string policy_hash;  // empty without a policy
  std::shared_ptr<const CallLedger> calls;
  const ComputedEntries* entries = nullptr;
  const CollectiveTimes* times = nullptr;  // null: nothing is timed
  const GuardTotals* guard = nullptr;      // null: no table is guarded
  AgreedValues values{};                   // live values that all ranks agreed on
  int memory_pressure = -1;                // a MemoryPressure; -1: the program reported nothing
  uint64_t records_lost = 0;
};

// Text exposition format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
std::string MetricsText(const MetricsSource& source);

// Starts a thread that writes what `source` returns into `path`, and registers a last write at the end of the
// process. Call it once per process; a forked child writes nothing. A failure to write is logged once, and
// the next file is tried again.
void KeepMetricsFile(std::string path, MetricsSource (*source)());

}  // namespace dynamiccl
