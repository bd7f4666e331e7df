// SPDX-License-Identifier: Apache-2.0
// A recorded run with all that its report shows, worked out once for the page, the JSON and the tables.
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

struct RunReport {
  std::string name;  // of the trace file
  TraceSummary summary;
  std::vector<RunKeyAccount> keys;
  StageAccount stages;
  std::vector<TableVersion> versions;
  std::vector<WaitedShareView> waited_shares;
  double step_ms = 0;  // median of the marked steps; 0: none were marked
  double length_ms = 0;
  BytesOverTime over_time;
  StepWindow step;
  std::vector<Regret> regrets;  // none without a sweep of the run's fabric

  int64_t CallsDecidedBy(DecidedBy by) const;
};

// `topology`: of the sweeps; empty: every one that has the run's ranks and nodes.
RunReport ReportOfRun(const NamedTrace& trace, const std::vector<NamedMeasurements>& measurements,
                      const std::string& topology);

// The parts of the page, in the order in which a reader asks. What the inputs cannot answer is said, with how
// to get it.
HtmlSection RunsSideBySide(const std::vector<RunReport>& runs);
HtmlSection StageFingerprints(const std::vector<RunReport>& runs);
HtmlSection RunOverview(const RunReport& run);
HtmlSection Timeline(const RunReport& run);
HtmlSection DecisionsMade(const RunReport& run);
HtmlSection RegretOfRun(const RunReport& run);
HtmlSection DefaultAgainstOurs(const RunReport& run);
HtmlSection ChoicesOverSizes(const RunReport& run);
HtmlSection TriggerFirings(const RunReport& run, const std::map<uint32_t, std::string>& reasons);
HtmlSection GuardSection(const RunReport& run, const GuardAccount& account);
HtmlSection PolicyMap(const NamedPolicy& policy, const std::vector<NamedMeasurements>& measurements);

// docs/formats/report.md names every field.
Json RunJson(const RunReport& run, const std::map<uint32_t, std::string>& reasons);
Json GuardJson(const GuardAccount& account);

// File name to RFC 4180 text: "keys.csv", "stages.csv", "regret.csv", "versions.csv".
std::map<std::string, std::string> RunTables(const std::vector<RunReport>& runs,
                                             const std::map<uint32_t, std::string>& reasons);

}  // namespace dynamiccl
