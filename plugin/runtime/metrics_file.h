// SPDX-License-Identifier: Apache-2.0
// The job in numbers for Prometheus (DYNAMICCL_METRICS): a file in its text format that is replaced every ten
// seconds and at the process's end, as node_exporter's textfile collector wants it. docs/telemetry.md names
// the metrics.
#pragma once

#include <memory>
#include <string>

#include "plugin/runtime/call_ledger.h"
#include "plugin/runtime/guard_totals.h"
#include "plugin/runtime/made_entries.h"
#include "plugin/times/collective_times.h"

namespace dynamiccl {

// What is known when a file is written.
struct MetricsSource {
  int rank = -1;  // -1: unknown
  std::string mode;
  std::string policy_hash;  // empty without a policy
  std::shared_ptr<const CallLedger> calls;
  const MadeEntries* entries = nullptr;
  const CollectiveTimes* times = nullptr;  // null: nothing is timed
  const GuardTotals* guard = nullptr;      // null: no table is guarded
  int memory_pressure = -1;                // MemoryPressure; -1: the program did not say
  uint64_t records_lost = 0;
};

// Text exposition format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
std::string MetricsText(const MetricsSource& source);

// Starts a thread that writes what `source` returns into `path`, and has it written once more at the
// process's end. Called once in a process; a forked child writes nothing. What cannot be written is logged
// once, and tried again with the next file.
void KeepMetricsFile(std::string path, MetricsSource (*source)());

}  // namespace dynamiccl
