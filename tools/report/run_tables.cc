// SPDX-License-Identifier: Apache-2.0
// The report's numbers as CSV (RFC 4180), one file for each kind of row.
#include <fmt/format.h>

#include "tools/report/run_report.h"

namespace dynamiccl {
namespace {

// One CSV field. It is in quotes if it contains a comma, a quote or a line break.
std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// One CSV line with the line end that RFC 4180 asks for.
std::string Row(const std::vector<std::string>& fields) {
  std::string row;
  for (const std::string& field : fields) row += (row.empty() ? "" : ",") + Field(field);
  return row + "\r\n";
}

// The median in microseconds; empty if nothing was timed.
std::string Microseconds(const Timing& timing) {
  return timing.repeats == 0 ? "" : fmt::format("{:.3f}", timing.median);
}

std::string KeyRow(const RunReport& run, const RunKeyAccount& account) {
  std::vector<std::string> fields{run.name,
                                  std::to_string(account.key.n_ranks),
                                  std::to_string(account.key.n_nodes),
                                  std::string(Name(account.key.collective)),
                                  std::to_string(account.key.bytes),
                                  std::to_string(account.calls),
                                  account.decided_any() ? Name(account.choice) : "",
                                  Microseconds(account.default_us),
                                  Microseconds(account.ours_us)};
  for (int by = 0; by < kDeciders; ++by) {
    const auto calls = account.decided.find(static_cast<DecidedBy>(by));
    fields.push_back(calls == account.decided.end() ? "0" : std::to_string(calls->second));
  }
  return Row(fields);
}

std::string KeyTable(const std::vector<RunReport>& runs) {
  std::vector<std::string> head{"run",   "ranks",  "nodes",      "collective", "bytes",
                                "calls", "choice", "default_us", "ours_us"};
  for (int by = 0; by < kDeciders; ++by)
    head.push_back("by_" + std::string(Name(static_cast<DecidedBy>(by))));
  std::string text = Row(head);
  for (const RunReport& run : runs) {
    for (const RunKeyAccount& account : run.keys) text += KeyRow(run, account);
  }
  return text;
}

std::string StageTable(const std::vector<RunReport>& runs) {
  std::string text = Row({"run", "stage", "collective", "role", "phase", "steps", "calls", "bytes",
                          "least_bytes", "most_bytes"});
  for (const RunReport& run : runs) {
    for (const StageRow& row : run.stages.rows) {
      const auto steps = run.stages.steps.find(row.stage);
      text +=
          Row({run.name, std::string(Name(row.stage)), std::string(Name(row.collective)),
               std::string(Name(row.role)), std::string(Name(row.phase)),
               std::to_string(steps == run.stages.steps.end() ? 0 : steps->second), std::to_string(row.calls),
               std::to_string(row.bytes), std::to_string(row.least_bytes), std::to_string(row.most_bytes)});
    }
  }
  return text;
}

std::string RegretTable(const std::vector<RunReport>& runs) {
  std::string text = Row({"run", "topology", "ranks", "nodes", "collective", "bytes", "measured_bytes",
                          "calls", "default", "default_us", "chosen", "chosen_us", "best", "best_us"});
  for (const RunReport& run : runs) {
    for (const Regret& regret : run.regrets) {
      for (const RegretRow& row : regret.rows) {
        text +=
            Row({run.name, regret.topology, std::to_string(row.key.n_ranks), std::to_string(row.key.n_nodes),
                 std::string(Name(row.key.collective)), std::to_string(row.key.bytes),
                 std::to_string(row.measured_bytes), std::to_string(row.calls), Name(row.by_default.config),
                 Microseconds(row.by_default.microseconds), Name(row.chosen.config),
                 Microseconds(row.chosen.microseconds), Name(row.best.config),
                 Microseconds(row.best.microseconds)});
      }
    }
  }
  return text;
}

std::string VersionTable(const std::vector<RunReport>& runs, const std::map<uint32_t, std::string>& reasons) {
  std::string text = Row({"run", "since_ms", "communicator", "call_number", "version", "reason", "changes"});
  for (const RunReport& run : runs) {
    for (const TableVersion& version : run.versions) {
      const std::string* const reason = ReasonOf(version, reasons);
      text += Row({run.name, fmt::format("{:.3f}", static_cast<double>(version.since_ns) * 1e-6),
                   std::to_string(version.communicator), std::to_string(version.call_number),
                   std::to_string(version.version), reason == nullptr ? "" : *reason,
                   fmt::format("{}", fmt::join(version.changes, "; "))});
    }
  }
  return text;
}

}  // namespace

std::map<std::string, std::string> RunTables(const std::vector<RunReport>& runs,
                                             const std::map<uint32_t, std::string>& reasons) {
  return {{"keys.csv", KeyTable(runs)},
          {"stages.csv", StageTable(runs)},
          {"regret.csv", RegretTable(runs)},
          {"versions.csv", VersionTable(runs, reasons)}};
}

}  // namespace dynamiccl
