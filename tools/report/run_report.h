// SPDX-License-Identifier: Apache-2.0
// All that the report shows of a recorded run, computed once for the page, the JSON and the tables.
#pragma once

#include <map>
#include <memory>
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
#include "traces/format/record_source.h"

namespace dynamiccl {

// All numbers of one recorded run. ReportOfRun fills it; the functions below only read it.
struct RunReport {
  // File name of the trace.
  std::string name;
  TraceSummary summary;
  std::vector<RunKeyAccount> keys;
  StageAccount stages;
  // The policy that recognised stages and roles of the calls; empty: the program labelled them.
  std::string recognised_by;
  std::vector<TableVersion> versions;
  std::vector<WaitedShareView> waited_shares;
  // Median time of the training steps that the program marked; 0: none were marked.
  double step_ms = 0;
  // Time for each training sample; not set if the program did not mark how many samples a step has.
  std::optional<SampleTimes> sample_times;
  // Time from the first call of the run to the last.
  double length_ms = 0;
  BytesOverTime over_time;
  StepWindow step;
  // Holds what the run's choices cost, by topology. Empty without a sweep of the run's fabric.
  std::vector<Regret> regrets;

  // Number of calls for which `by` (policy, rule, user and so on) decided.
  int64_t CallsDecidedBy(DecidedBy by) const;
};

// Recognises the labels of a trace whose program labelled no call.
struct Recogniser {
  // The answers that the job recorded come before the policy.
  bool decisions = false;
  std::shared_ptr<const Policy> policy;  // null: none
  std::string name;                      // of the policy
};

// Computes the numbers of one trace, except those that need a sweep, in at most three passes over its
// records. Memory does not grow with the number of calls. `recognised_by` is what recognised the labels that
// the records have already.
Result<RunReport> ReadRun(const std::string& path, const RecordSource& source, const Recogniser& recogniser,
                          const std::string& recognised_by);

// Computes the report of one trace. The run is compared only with the sweep of `topology`; if that is empty,
// with every topology that has the run's ranks and nodes.
RunReport ReportOfRun(const NamedTrace& trace, const std::vector<NamedMeasurements>& measurements,
                      const std::string& topology);

// The sections of the page, in the order in which a reader asks. If the inputs cannot answer a section's
// question, the section says how to get the missing input.
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

// The run as JSON (docs/formats/report.md names every field). `reasons` are the reasons of table versions, by
// the low 8 bits of the version.
Json RunJson(const RunReport& run, const std::map<uint32_t, std::string>& reasons);
// The guard's metrics as JSON; null if the job left none.
Json GuardJson(const GuardAccount& account);

// The tables as CSV (RFC 4180), by file name: "keys.csv", "stages.csv", "regret.csv" and "versions.csv".
std::map<std::string, std::string> RunTables(const std::vector<RunReport>& runs,
                                             const std::map<uint32_t, std::string>& reasons);

}  // namespace dynamiccl
