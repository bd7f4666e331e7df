// SPDX-License-Identifier: Apache-2.0
// The report: one offline HTML file, and its twin in JSON, from a demo's result, traces and measurements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/report/demo_result.h"
#include "tools/report/html.h"
#include "tools/report/json_output.h"
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

struct ReportInputs {
  std::optional<DemoResult> demo;
  std::vector<NamedTrace> traces;
  std::vector<NamedMeasurements> measurements;
};

// Tells the kinds by their ends: .json (of a demo), .ctrace, .measurements. Anything else is an error.
Result<ReportInputs> ReadReportInputs(const std::vector<std::string>& paths);

std::string RenderReport(const ReportInputs& inputs);
Json ReportJson(const ReportInputs& inputs);

// The parts, in the order of the page.
std::vector<HtmlSection> DemoSections(const DemoResult& demo);
std::vector<HtmlSection> MeasurementSections(const NamedMeasurements& measurements, const DemoResult* demo);
HtmlSection TraceSectionHtml(const NamedTrace& trace);

}  // namespace dynamiccl
