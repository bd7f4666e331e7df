// SPDX-License-Identifier: Apache-2.0
// A recorded run with everything that its report shows, computed once for the page, the JSON and the tables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/report/guard_account.h"
#include "tools/report/html.h"
#include "tools/report/json_output.h"
#include "tools/report/report.h"
#include "tools/report/run_account.h"
#include "tools/report/run_regret.h"
#include "tools/report/run_timeline.h"
#include "tools/report/trace_summary.h"

namespace dynamiccl {

// All numbers of one trace. ReportOfRun fills it; the functions below only read it.
struct RunReport {
  // File name of the trace.
  std::string name;
  TraceSummary summary;
  std::vector<RunKeyAccount> keys;
  StageAccount stages;
  // The policy that recognised stages and roles; empty: the program labelled them.
  std::string recognised_by;
  std::vector<TableVersion> versions;
  std::vector<WaitedShareView> waited_shares;
  // Median of the marked steps; 0: none were marked.
  double step_ms = 0;
  // Nothing if the program did not mark its samples.
  std::optional<SampleTimes> sample_times;
  // Time from the first call to the last.
  double length_ms = 0;
  BytesOverTime over_time;
  StepWindow step;
  // Empty without a sweep of the run's fabric.
  std::vector<Regret> regrets;

  // Number of calls that this decider answered.
  int64_t CallsDecidedBy(DecidedBy by) const;
};

// Computes the report of one trace. `topology` is the only topology of the sweeps to compare with; empty:
// every one with the run's ranks and nodes.
RunReport ReportOfRun(const NamedTrace& trace, const std::vector<NamedMeasurements>& measurements,
                      const std::string& topology);

// The parts of the page, in the order in which a reader asks. If the inputs cannot answer a part's question,
// the part says how to get the missing input.
HtmlSection Answer(const std::vector<RunReport>& runs);
HtmlSection RunsSideBySide(const std::vector<RunReport>& runs);
HtmlSection StageFingerprints(const std::vector<RunReport>& runs);
HtmlSection RunOverview(const RunReport& run);
HtmlSection Timeline(const RunReport& run);
HtmlSection DecisionsMade(const RunReport& run);
HtmlSection RegretOfRun(const RunReport& run);
HtmlSection DefaultAgainstOurs(const RunReport& run);
HtmlSection ChoicesOverSizes(const RunReport& run);
HtmlSection StructureFirings(const RunReport& run, const std::map<uint32_t, std::string>& reasons);
HtmlSection GuardSection(const RunReport& run, const GuardAccount& account);
HtmlSection PolicyMap(const NamedPolicy& policy, const std::vector<NamedMeasurements>& measurements);

// The run as JSON (docs/formats/report.md names every field). `reasons` are those of table versions.
Json RunJson(const RunReport& run, const std::map<uint32_t, std::string>& reasons);
// The guard's account as JSON; null without metrics of a guard.
Json GuardJson(const GuardAccount& account);

// CSV (RFC 4180) by file name: "keys.csv", "stages.csv", "regret.csv" and "versions.csv".
std::map<std::string, std::string> RunTables(const std::vector<RunReport>& runs,
                                             const std::map<uint32_t, std::string>& reasons);

}  // namespace dynamiccl
