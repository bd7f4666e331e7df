// SPDX-License-Identifier: Apache-2.0
#include "tools/report/report.h"

#include <filesystem>

#include "tools/report/choice_comparison.h"
#include "tools/report/trace_summary.h"
#include "traces/format/measurement_file.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

Status ReadInput(const std::string& path, ReportInputs& inputs) {
  if (path.ends_with(".ctrace") || path.ends_with(".ctracez")) {
    DYNAMICCL_TRY(Trace trace, ReadTrace(path));
    inputs.traces.push_back({path, std::move(trace)});
  } else if (path.ends_with(".measurements")) {
    DYNAMICCL_TRY(MeasurementFile file, ReadMeasurementFile(path));
    inputs.measurements.push_back({path, std::move(file)});
  } else if (path.ends_with(".json")) {
    DYNAMICCL_TRY(inputs.demo, ReadDemoResult(path));
  } else {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "'{}' is nothing that a report is made of", path),
                    "give the demo.json of a demo, .ctrace files or .measurements files");
  }
  return {};
}

Json MeasurementJson(const NamedMeasurements& measurements) {
  Json rows = Json::array();
  for (const SweepCell& cell : CellsOf(measurements.file)) {
    const TimedConfig by_default = DefaultOf(cell);
    const TimedConfig best = BestOf(cell);
    rows.push_back({{"topology", cell.topology},
                    {"collective", Name(cell.collective)},
                    {"bytes", cell.bytes},
                    {"default", Name(by_default.config)},
                    {"default_us", nlohmann::json(by_default.microseconds)},
                    {"best", Name(best.config)},
                    {"best_us", nlohmann::json(best.microseconds)}});
  }
  return {{"path", measurements.path}, {"rows", rows}};
}

}  // namespace

Result<ReportInputs> ReadReportInputs(const std::vector<std::string>& paths) {
  ReportInputs inputs;
  for (const std::string& path : paths) DYNAMICCL_CHECK_OK(ReadInput(path, inputs));
  return inputs;
}

std::string RenderReport(const ReportInputs& inputs) {
  std::vector<HtmlSection> sections;
  if (inputs.demo) sections = DemoSections(*inputs.demo);
  const DemoResult* demo = inputs.demo ? &*inputs.demo : nullptr;
  for (const NamedMeasurements& measurements : inputs.measurements) {
    for (HtmlSection& section : MeasurementSections(measurements, demo))
      sections.push_back(std::move(section));
  }
  for (const NamedTrace& trace : inputs.traces) sections.push_back(TraceSectionHtml(trace));
  for (size_t i = 0; i < sections.size(); ++i) sections[i].id = fmt::format("part-{}", i + 1);
  return HtmlPage("DynamICCL report", sections);
}

Json ReportJson(const ReportInputs& inputs) {
  Json traces = Json::array();
  for (const NamedTrace& trace : inputs.traces)
    traces.push_back(SummaryJson(trace.path, SummarizeTrace(trace.trace)));
  Json measurements = Json::array();
  for (const NamedMeasurements& file : inputs.measurements) measurements.push_back(MeasurementJson(file));
  return {{"schema", 1},
          {"demo", inputs.demo ? Json(nlohmann::json(*inputs.demo)) : Json()},
          {"traces", traces},
          {"measurements", measurements}};
}

}  // namespace dynamiccl
