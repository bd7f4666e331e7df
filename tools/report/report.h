// SPDX-License-Identifier: Apache-2.0
// The report: one offline HTML file, and its twins in JSON and CSV, from a demo's result, traces,
// measurements, metrics, logs and policies.
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

struct NamedTrace {
  std::string path;
  Trace trace;
};
struct NamedMeasurements {
  std::string path;
  MeasurementFile file;
};

struct NamedPolicy {
  std::string path;
  std::shared_ptr<const Policy> policy;
};

struct ReportInputs {
  std::optional<DemoResult> demo;
  std::vector<NamedTrace> traces;
  std::vector<NamedMeasurements> measurements;
  std::vector<MetricLine> metrics;                  // of all processes of the job
  std::map<uint32_t, std::string> version_reasons;  // of table versions, from its log
  std::vector<NamedPolicy> policies;
  std::string
      topology;  // of the sweeps that stands for the runs' fabric; empty: every one of their ranks and nodes
};

// Tells the kinds by their ends: .json (of a demo), .ctrace, .measurements, .prom, .log, .dcpolicy. Anything
// else is an error.
Result<ReportInputs> ReadReportInputs(const std::vector<std::string>& paths);

std::string RenderReport(const ReportInputs& inputs);
// docs/formats/report.md
Json ReportJson(const ReportInputs& inputs);
// File name to RFC 4180 text.
std::map<std::string, std::string> ReportTables(const ReportInputs& inputs);

// The parts, in the order of the page.
std::vector<HtmlSection> DemoSections(const DemoResult& demo);
// `topology`: the only one to show; empty: all.
std::vector<HtmlSection> MeasurementSections(const NamedMeasurements& measurements, const DemoResult* demo,
                                             const std::string& topology);
// What a trace says by itself, as one part.
HtmlSection TraceSectionHtml(const NamedTrace& trace);

}  // namespace dynamiccl
