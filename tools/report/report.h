// SPDX-License-Identifier: Apache-2.0
// The report: one offline HTML file, and the same numbers in JSON and CSV. Its inputs are a demo's result,
// traces, measurements, metrics, logs and policies.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/policy/policy.h"
#include "tools/report/demo_result.h"
#include "tools/report/html.h"
#include "tools/report/json_output.h"
#include "tools/running/metrics_reading.h"
#include "traces/format/measurement.h"
#include "traces/format/trace.h"

namespace dynamiccl {

struct RunReport;  // run_report.h

// A trace and the path from which it was read.
struct NamedTrace {
  std::string path;
  Trace trace;
  // The policy whose LSTM recognised roles, phases and stages of the calls; empty: the program labelled its
  // calls (recognised_labels.h).
  std::string recognised_by;
  // The numbers of the run, if they were counted while the trace was read. In this case `trace` is empty.
  std::shared_ptr<const RunReport> run = nullptr;
};
// A measurement file and the path from which it was read.
struct NamedMeasurements {
  std::string path;
  MeasurementFile file;
};

// A policy and the path from which it was read.
struct NamedPolicy {
  std::string path;
  std::shared_ptr<const Policy> policy;
};

// The inputs of a report. Each may be absent.
struct ReportInputs {
  std::optional<DemoResult> demo;
  std::vector<NamedTrace> traces;
  std::vector<NamedMeasurements> measurements;
  // Metrics of all processes of the recorded job.
  std::vector<MetricLine> metrics;
  // Reasons of the table versions, from the job's log.
  std::map<uint32_t, std::string> version_reasons;
  std::vector<NamedPolicy> policies;
  // Name of the topology on which the runs took place, as the sweeps name it. Empty: the runs are compared
  // with every topology that has their numbers of ranks and nodes.
  std::string topology;
};

// Reads all files. The end of a name says what the file is: .json (of a demo), .ctrace, .ctracez,
// .measurements, .prom, .log or .dcpolicy. It is an error if a name ends differently or a file cannot be
// read. Traces are counted while they are read, and not kept. Where a program labelled no call, the first
// policy among the inputs recognises the labels; without one, the answers that the job recorded; else the
// policy in the file `fallback` (empty: none).
Result<ReportInputs> ReadReportInputs(const std::vector<std::string>& paths, const std::string& fallback);

// Renders the report as one HTML file.
std::string RenderReport(const ReportInputs& inputs);
// Returns the numbers of the report as JSON (docs/formats/report.md).
Json ReportJson(const ReportInputs& inputs);
// Returns the numbers of the report as CSV (RFC 4180), by file name.
std::map<std::string, std::string> ReportTables(const ReportInputs& inputs);

// The sections about a demo, in the order of the page.
std::vector<HtmlSection> DemoSections(const DemoResult& demo);
// The sections about a sweep on `topology`, or on all topologies if that is empty. `demo` adds the times of
// the policy's choices; it may be null.
std::vector<HtmlSection> MeasurementSections(const NamedMeasurements& measurements, const DemoResult* demo,
                                             const std::string& topology);
// One section with the numbers of a trace for which there are no other inputs.
HtmlSection TraceSectionHtml(const NamedTrace& trace);

}  // namespace dynamiccl
