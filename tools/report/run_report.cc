// SPDX-License-Identifier: Apache-2.0
// Computes the numbers of the report about a run and writes them as JSON.
#include "tools/report/run_report.h"

#include <filesystem>

#include "tools/report/choice_comparison.h"

namespace dynamiccl {
namespace {

Json KeyJson(const RunKeyAccount& account) {
  Json decided = Json::object();
  for (const auto& [by, calls] : account.decided) decided[std::string(Name(by))] = calls;
  Json configs = Json::array();
  for (const auto& [config, calls] : account.configs)
    configs.push_back({{"config", Name(config)}, {"calls", calls}});
  return {{"ranks", account.key.n_ranks},
          {"nodes", account.key.n_nodes},
          {"collective", Name(account.key.collective)},
          {"bytes", account.key.bytes},
          {"calls", account.calls},
          {"decided_by", decided},
          {"configs", configs},
          {"default_us", TimingJson(account.default_us)},
          {"ours_us", TimingJson(account.ours_us)}};
}

Json StagesJson(const StageAccount& stages) {
  Json rows = Json::array();
  for (const StageRow& row : stages.rows) {
    const auto steps = stages.steps.find(row.stage);
    rows.push_back({{"stage", Name(row.stage)},
                    {"collective", Name(row.collective)},
                    {"role", Name(row.role)},
                    {"phase", Name(row.phase)},
                    {"calls", row.calls},
                    {"bytes", row.bytes},
                    {"least_bytes", row.least_bytes},
                    {"most_bytes", row.most_bytes},
                    {"steps", steps == stages.steps.end() ? 0 : steps->second}});
  }
  return rows;
}

Json VersionsJson(const std::vector<TableVersion>& versions, const std::map<uint32_t, std::string>& reasons) {
  Json rows = Json::array();
  for (const TableVersion& version : versions) {
    const std::string* const reason = ReasonOf(version, reasons);
    rows.push_back({{"since_ms", static_cast<double>(version.since_ns) * 1e-6},
                    {"communicator", version.communicator},
                    {"call_number", version.call_number},
                    {"version", version.version},
                    {"reason", reason == nullptr ? Json() : Json(*reason)},
                    {"changes", version.changes}});
  }
  return rows;
}

Json RegretJson(const Regret& regret) {
  Json rows = Json::array();
  for (const RegretRow& row : regret.rows) {
    rows.push_back({{"collective", Name(row.key.collective)},
                    {"bytes", row.key.bytes},
                    {"measured_bytes", row.measured_bytes},
                    {"calls", row.calls},
                    {"default", Name(row.by_default.config)},
                    {"default_us", TimingJson(row.by_default.microseconds)},
                    {"chosen", Name(row.chosen.config)},
                    {"chosen_us", TimingJson(row.chosen.microseconds)},
                    {"best", Name(row.best.config)},
                    {"best_us", TimingJson(row.best.microseconds)}});
  }
  return {{"topology", regret.topology},
          {"calls", regret.calls},
          {"counted_calls", regret.counted_calls},
          {"default_s", regret.default_s},
          {"chosen_s", regret.chosen_s},
          {"best_s", regret.best_s},
          {"regret", regret.RegretShare()},
          {"default_regret", regret.DefaultRegretShare()},
          {"rows", rows}};
}

}  // namespace

int64_t RunReport::CallsDecidedBy(DecidedBy by) const {
  int64_t calls = 0;
  for (const RunKeyAccount& key : keys) {
    const auto found = key.decided.find(by);
    if (found != key.decided.end()) calls += found->second;
  }
  return calls;
}

Json SampleTimesJson(const std::optional<SampleTimes>& times) {
  if (!times) return {};
  return {{"first", times->first_ms},
          {"last", times->last_ms},
          {"first_samples", times->first_samples},
          {"last_samples", times->last_samples}};
}

// A pass over memory cannot fail.
RunReport RunInMemory(const NamedTrace& trace) {
  return ReadRun(trace.path, MemoryRecords(trace.trace), {}, trace.recognised_by).value_or(RunReport{});
}

RunReport ReportOfRun(const NamedTrace& trace, const std::vector<NamedMeasurements>& measurements,
                      const std::string& topology) {
  RunReport run = trace.run ? *trace.run : RunInMemory(trace);
  for (const NamedMeasurements& sweep : measurements) {
    for (Regret& regret : RegretsOf(run.keys, sweep.file)) {
      if (topology.empty() || topology == regret.topology) run.regrets.push_back(std::move(regret));
    }
  }
  return run;
}

Json RunJson(const RunReport& run, const std::map<uint32_t, std::string>& reasons) {
  Json keys = Json::array();
  for (const RunKeyAccount& account : run.keys) keys.push_back(KeyJson(account));
  Json regrets = Json::array();
  for (const Regret& regret : run.regrets) regrets.push_back(RegretJson(regret));
  Json waited = Json::array();
  for (const WaitedShareView& share : run.waited_shares) {
    waited.push_back({{"collective", Name(share.collective)},
                      {"bytes", share.bytes},
                      {"role", Name(share.role)},
                      {"share", share.share}});
  }
  return {{"name", run.name},
          {"length_ms", run.length_ms},
          {"step_ms", run.step_ms > 0 ? Json(run.step_ms) : Json()},
          {"sample_ms", SampleTimesJson(run.sample_times)},
          {"keys", keys},
          {"recognised_by", run.recognised_by},
          {"stages", StagesJson(run.stages)},
          {"versions", VersionsJson(run.versions, reasons)},
          {"waited_shares", waited},
          {"regret", regrets}};
}

Json GuardJson(const GuardAccount& account) {
  if (!account.guarded) return {};
  return {{"versions", account.versions},        {"failed_versions", account.failed_versions},
          {"probing_s", account.probing_s},      {"guarded_s", account.guarded_s},
          {"timing_s", account.timing_s},        {"calls_lost", account.calls_lost},
          {"records_lost", account.records_lost}};
}

}  // namespace dynamiccl
