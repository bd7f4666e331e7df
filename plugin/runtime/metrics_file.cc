// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/metrics_file.h"

#include <fmt/format.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "plugin/border/no_throw.h"
#include "plugin/border/signal_block.h"
#include "src/base/log.h"
#include "src/base/own_file.h"
#include "src/base/whole_file.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl {
namespace {

// Seconds between two files. Prometheus usually scrapes every 15 s or less often, so each scrape finds a new
// file.
constexpr time_t kSecondsBetweenFiles = 10;

// The text of one file: metric families in order; every line has the rank as a label.
class Exposition {
 public:
  explicit Exposition(int rank) : rank_(rank < 0 ? "" : fmt::format("rank=\"{}\"", rank)) {}

  void Family(const char* name, const char* type, const char* help) {
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  // `labels` is the text between the braces, without the rank.
  template <typename Value>
  void Line(const char* name, const std::string& labels, Value value) {
    const char* const between = labels.empty() || rank_.empty() ? "" : ",";
    fmt::format_to(std::back_inserter(text_), "{}{{{}{}{}}} {}\n", name, labels, between, rank_, value);
  }
  std::string Text() && { return std::move(text_); }

 private:
  const std::string rank_;
  std::string text_;
};

double Seconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

// Calls `function` with the labels and totals of each coverage and collective that has been counted.
template <typename Function>
void ForEachCallCount(const CallLedger& calls, Function&& function) {
  for (int coverage = 0; coverage < kCoverages; ++coverage) {
    for (int collective = 0; collective < kCollectives; ++collective) {
      const CallTotals totals =
          calls.Calls(static_cast<Coverage>(coverage), static_cast<Collective>(collective));
      if (totals.calls == 0) continue;
      function(fmt::format("collective=\"{}\",coverage=\"{}\"", Name(static_cast<Collective>(collective)),
                           Name(static_cast<Coverage>(coverage))),
               totals);
    }
  }
}

void PutCalls(Exposition& out, const CallLedger& calls) {
  out.Family("dynamiccl_calls_total", "counter",
             "NCCL calls, by whether a tuner can change how they are done.");
  ForEachCallCount(calls, [&](const std::string& labels, const CallTotals& totals) {
    out.Line("dynamiccl_calls_total", labels, totals.calls);
  });
  out.Family("dynamiccl_call_bytes_total", "counter", "Bytes of these calls, as NCCL counts them.");
  ForEachCallCount(calls, [&](const std::string& labels, const CallTotals& totals) {
    out.Line("dynamiccl_call_bytes_total", labels, totals.bytes);
  });
}

void PutDecisions(Exposition& out, const CallLedger& calls) {
  out.Family("dynamiccl_decisions_total", "counter", "Answers to NCCL's tuner questions, by who decided.");
  for (int by = 0; by < kDeciders; ++by) {
    for (int i = 0; i < kTunableCollectives; ++i) {
      const auto collective = static_cast<Collective>(i);
      const uint64_t count = calls.Decisions(collective, static_cast<DecidedBy>(by));
      if (count == 0) continue;
      out.Line("dynamiccl_decisions_total",
               fmt::format("collective=\"{}\",decided_by=\"{}\"", Name(collective),
                           Name(static_cast<DecidedBy>(by))),
               count);
    }
  }
}

// These metrics appear only with a policy, because without one nothing is recognised.
void PutRecognised(Exposition& out, const CallLedger& calls) {
  out.Family("dynamiccl_recognised_calls_total", "counter",
             "Answers to NCCL's tuner questions, by what the policy's LSTM recognised before the call.");
  for (int i = 0; i < kRoles * kPhases * kZeroStages; ++i) {
    const auto role = static_cast<Role>(i / kZeroStages / kPhases);
    const auto phase = static_cast<Phase>(i / kZeroStages % kPhases);
    const auto stage = static_cast<ZeroStage>(i % kZeroStages);
    const uint64_t count = calls.Recognised(role, phase, stage);
    if (count == 0) continue;
    out.Line("dynamiccl_recognised_calls_total",
             fmt::format("role=\"{}\",phase=\"{}\",stage=\"{}\"", Name(role), Name(phase), Name(stage)),
             count);
  }
  out.Family("dynamiccl_structure_changes_total", "counter",
             "Calls at which sizes or the order of calls changed, as the policy's LSTM says.");
  out.Line("dynamiccl_structure_changes_total", "", calls.changes());
}

std::string LabelsOf(const TimedKey& key) {
  return fmt::format("communicator=\"{:016x}\",collective=\"{}\",bytes=\"{}\",config=\"{}\"",
                     key.communicator, Name(key.collective), LowerBound(key.size_class),
                     Describe(key.config));
}

void PutTimes(Exposition& out, const CollectiveTimes& times) {
  const auto all = times.statistics().All();
  out.Family("dynamiccl_collective_seconds", "summary", "Times of the timed collectives on this rank.");
  for (const auto& [key, of] : all) {
    out.Line("dynamiccl_collective_seconds_sum", LabelsOf(key), Seconds(of.total_ns));
    out.Line("dynamiccl_collective_seconds_count", LabelsOf(key), of.count);
  }
  out.Family("dynamiccl_collective_least_seconds", "gauge",
             "The least of these times: waiting is not in it.");
  for (const auto& [key, of] : all)
    out.Line("dynamiccl_collective_least_seconds", LabelsOf(key), Seconds(of.least_ns));
  out.Family("dynamiccl_timing_seconds_total", "counter", "Host time that taking times has cost.");
  out.Line("dynamiccl_timing_seconds_total", "", Seconds(times.cost_ns()));
}

std::string LabelsOf(const SavedKey& key, const ConfigChoice& choice) {
  return fmt::format(
      "ranks=\"{}\",nodes=\"{}\",collective=\"{}\",bytes=\"{}\",role=\"{}\",config=\"{}\",default=\"{}\"",
      key.n_ranks, key.n_nodes, Name(key.key.collective), LowerBound(key.key.size_class), Name(key.key.role),
      Describe(choice.config), Describe(choice.default_config));
}

// Entries that keep NCCL's choice have no prediction, so they have no line.
void PutPredicted(Exposition& out, const ComputedEntries& entries) {
  out.Family("dynamiccl_predicted_seconds", "gauge",
             "What the policy predicts for its choice; absent where it leaves NCCL alone.");
  for (const auto& [key, choice] : entries.All()) {
    if (choice.config.leaves_nccl_alone()) continue;
    out.Line("dynamiccl_predicted_seconds", LabelsOf(key, choice), choice.predicted_microseconds() * 1e-6);
  }
}

// Writes the metrics of the guards. A reason's label is its name with '_' in place of blanks.
void PutGuard(Exposition& out, const GuardTotals& guard) {
  out.Family("dynamiccl_table_versions_total", "counter",
             "Table versions of the guard that ranks took up, by its reason.");
  for (int i = 0; i < kGuardReasons; ++i) {
    std::string reason(Name(static_cast<GuardReason>(i)));
    std::replace(reason.begin(), reason.end(), ' ', '_');
    out.Line("dynamiccl_table_versions_total", fmt::format("reason=\"{}\"", reason),
             guard.versions[static_cast<size_t>(i)].load(std::memory_order_relaxed));
  }
  const auto put = [&](const char* name, const char* help, auto value) {
    out.Family(name, "counter", help);
    out.Line(name, "", value);
  };
  put("dynamiccl_table_versions_failed_total", "Versions that ranks did not agree to.", guard.failed.load());
  put("dynamiccl_guard_calls_lost_total", "Calls that the guard did not hear of.", guard.lost.load());
  const auto seconds = [](const std::atomic<uint64_t>& ns) {
    return Seconds(static_cast<int64_t>(ns.load()));
  };
  put("dynamiccl_probing_seconds_total", "Estimated cost of trials and timing.", seconds(guard.probing_ns));
  out.Family("dynamiccl_guarded_seconds_total", "counter",
             "Estimated time of all guarded calls, by whether the program waits for them.");
  for (int i = 0; i < kCriticalities; ++i) {
    out.Line("dynamiccl_guarded_seconds_total",
             fmt::format("criticality=\"{}\"", Name(static_cast<Criticality>(i))),
             seconds(guard.guarded_ns[static_cast<size_t>(i)]));
  }
}

void PutValues(Exposition& out, const AgreedValues& values) {
  out.Family("dynamiccl_agreed_value", "gauge", "Live values that all ranks have agreed on.");
  for (const auto& [name, value] : values)
    out.Line("dynamiccl_agreed_value", fmt::format("name=\"{}\"", name), value);
}

// The state that the writing thread and the end of the process share. Never freed, because the thread may run
// until the very end.
struct Keeper {
  std::mutex mutex;
  std::string path;
  MetricsSource (*source)() = nullptr;
  bool failed = false;
  bool ended = false;
};
Keeper* g_keeper = nullptr;
std::atomic<bool> g_in_child{false};

// Replaces the whole file at once, so that a reader never sees half a file.
void Write(Keeper& keeper) {
  const std::lock_guard lock(keeper.mutex);
  if (keeper.ended || g_in_child.load()) return;
  const bool written = ReplaceFile(keeper.path, MetricsText(keeper.source()));
  if (!written && !keeper.failed)
    Log(LogLevel::kWarn, "metrics cannot be written to {}; look at DYNAMICCL_METRICS", keeper.path);
  keeper.failed = keeper.failed || !written;
}

[[noreturn]] void WriteForEver(Keeper* keeper) {
  for (;;) {
    const timespec pause{kSecondsBetweenFiles, 0};
    ::nanosleep(&pause, nullptr);
    NoThrow([=] { Write(*keeper); });
  }
}

// Writes the last file at the end of the process. Afterwards the thread writes nothing, because the objects
// that it reads may be closing.
void WriteLast() {
  if (g_in_child.load()) return;
  NoThrow([] { Write(*g_keeper); });
  const std::lock_guard lock(g_keeper->mutex);
  g_keeper->ended = true;
}

}  // namespace

std::string MetricsText(const MetricsSource& source) {
  Exposition out(source.rank);
  out.Family("dynamiccl_info", "gauge", "Build, mode and policy of the loaded object; always 1.");
  out.Line("dynamiccl_info",
           fmt::format("version=\"{}\",mode=\"{}\",policy=\"{}\"", DYNAMICCL_VERSION, source.mode,
                       source.policy_hash),
           1);
  PutCalls(out, *source.calls);
  PutDecisions(out, *source.calls);
  if (!source.policy_hash.empty()) PutRecognised(out, *source.calls);
  PutPredicted(out, *source.entries);
  if (source.times != nullptr) PutTimes(out, *source.times);
  if (source.guard != nullptr) PutGuard(out, *source.guard);
  if (!source.values.empty()) PutValues(out, source.values);
  if (source.memory_pressure >= 0) {
    out.Family("dynamiccl_memory_pressure", "gauge",
               "How short of memory the device is, as the program says: 0 low, 1 medium, 2 high.");
    out.Line("dynamiccl_memory_pressure", "", source.memory_pressure);
  }
  out.Family("dynamiccl_trace_records_lost_total", "counter", "Records that found no place in the trace.");
  out.Line("dynamiccl_trace_records_lost_total", "", source.records_lost);
  return std::move(out).Text();
}

void KeepMetricsFile(std::string path, MetricsSource (*source)()) {
  g_keeper = new Keeper;
  g_keeper->path = std::move(path);
  MakeFolderOf(g_keeper->path);
  g_keeper->source = source;
  ::pthread_atfork(nullptr, nullptr, [] { g_in_child.store(true); });
  ::atexit(WriteLast);
  const SignalBlock block;
  std::thread(WriteForEver, g_keeper).detach();
}

}  // namespace dynamiccl
