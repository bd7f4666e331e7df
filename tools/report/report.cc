// SPDX-License-Identifier: Apache-2.0
// Reads the input files and assembles the page from the sections that other files of this folder write.
#include "tools/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "src/policy/policy_file.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/run_report.h"
#include "tools/report/trace_summary.h"
#include "traces/format/measurement_file.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

Status ReadMetrics(const std::string& path, ReportInputs& inputs) {
  DYNAMICCL_TRY(const std::string text, ReadTextFile(path));
  const std::vector<MetricLine> lines = ParseMetrics(text);
  inputs.metrics.insert(inputs.metrics.end(), lines.begin(), lines.end());
  return {};
}

Status ReadLog(const std::string& path, ReportInputs& inputs) {
  DYNAMICCL_TRY(const std::string text, ReadTextFile(path));
  inputs.version_reasons.merge(VersionReasons(text));
  return {};
}

// Traces are counted after all other files have been read, since a policy may recognise their labels.
Status NoteTrace(const std::string& path, ReportInputs& inputs) {
  inputs.traces.push_back({.path = path});
  return {};
}

Status ReadSweep(const std::string& path, ReportInputs& inputs) {
  DYNAMICCL_TRY(MeasurementFile file, ReadMeasurementFile(path));
  inputs.measurements.push_back({path, std::move(file)});
  return {};
}

Status ReadPolicyInput(const std::string& path, ReportInputs& inputs) {
  DYNAMICCL_TRY(std::unique_ptr<const Policy> policy, ReadPolicyFile(path));
  inputs.policies.push_back({path, std::move(policy)});
  return {};
}

Status ReadDemo(const std::string& path, ReportInputs& inputs) {
  DYNAMICCL_TRY(inputs.demo, ReadDemoResult(path));
  return {};
}

// For each kind of input file: how its name ends, and the function that reads it.
constexpr struct {
  std::string_view end;
  Status (*read)(const std::string& path, ReportInputs& inputs);
} kKinds[] = {{".ctrace", NoteTrace},       {".ctracez", NoteTrace},
              {".measurements", ReadSweep}, {".dcpolicy", ReadPolicyInput},
              {".prom", ReadMetrics},       {".log", ReadLog},
              {".json", ReadDemo}};

Status ReadInput(const std::string& path, ReportInputs& inputs) {
  for (const auto& kind : kKinds) {
    if (path.ends_with(kind.end)) return kind.read(path, inputs);
  }
  if (!std::filesystem::exists(path))
    return WithHint(MakeError(ErrorKind::kNotFound, "{}: No such file or directory", path), "check the path");
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "'{}' is no file that a report is made of", path),
      "give .ctrace and .measurements files, a .dcpolicy, the .prom and .log files of a job, or the "
      "demo.json of a demo");
}

Result<Recogniser> RecogniserOf(const ReportInputs& inputs, const std::string& fallback) {
  if (!inputs.policies.empty()) {
    const NamedPolicy& first = inputs.policies.front();
    return Recogniser{false, first.policy, std::filesystem::path(first.path).filename().string()};
  }
  Recogniser recogniser{.decisions = true, .policy = nullptr, .name = ""};
  if (inputs.traces.empty() || fallback.empty()) return recogniser;
  DYNAMICCL_TRY(recogniser.policy, ReadPolicyFile(fallback));
  recogniser.name = std::filesystem::path(fallback).filename().string();
  return recogniser;
}

// Names a run by its file. Runs whose files have the same name, for example before/job.ctrace and
// after/job.ctrace, are named by their paths.
std::string NameOfRun(const std::vector<NamedTrace>& traces, const std::string& path) {
  const auto name = [](const std::string& of) { return std::filesystem::path(of).filename().string(); };
  const auto alike =
      std::ranges::count_if(traces, [&](const NamedTrace& one) { return name(one.path) == name(path); });
  return alike > 1 ? path : name(path);
}

// A file that cannot be streamed is read as a whole, because it is damaged or a process still writes it.
// Reading the whole file tells the two cases apart and names the damaged place.
Status CountTrace(const Recogniser& recogniser, const std::string& name, NamedTrace& trace) {
  Result<RunReport> run = ReadRun(trace.path, FileRecords(trace.path), recogniser, "");
  if (!run) {
    DYNAMICCL_TRY(const Trace whole, ReadTrace(trace.path));
    run = ReadRun(trace.path, MemoryRecords(whole), recogniser, "");
  }
  DYNAMICCL_TRY(RunReport read, std::move(run));
  read.name = name;
  trace.run = std::make_shared<const RunReport>(std::move(read));
  return {};
}

std::vector<RunReport> RunsOf(const ReportInputs& inputs) {
  std::vector<RunReport> runs;
  for (const NamedTrace& trace : inputs.traces)
    runs.push_back(ReportOfRun(trace, inputs.measurements, inputs.topology));
  return runs;
}

// Adds the sections about recorded runs: first a short answer, then two sections that compare all runs, then
// sections about each run.
void AddRuns(const ReportInputs& inputs, std::vector<HtmlSection>& sections) {
  const std::vector<RunReport> runs = RunsOf(inputs);
  if (runs.empty()) return;
  const GuardAccount guard = GuardAccountOf(inputs.metrics);
  if (!inputs.demo) sections.push_back(Answer(runs));  // a demo's page begins with its findings
  sections.push_back(RunsSideBySide(runs));
  sections.push_back(StageFingerprints(runs));
  for (const RunReport& run : runs) {
    HtmlSection whole{"", "Run " + run.name, ""};
    for (const HtmlSection& part :
         {RunOverview(run), Timeline(run), DecisionsMade(run), ChoicesOverSizes(run), RegretOfRun(run),
          DefaultAgainstOurs(run), StructureFirings(run, inputs.version_reasons), GuardSection(run, guard)})
      whole.html += fmt::format("<h3>{}</h3>\n{}", EscapeHtml(part.title), part.html);
    sections.push_back(std::move(whole));
  }
}

// True if only logs were given, which would give an empty page.
bool HoldsNothing(const ReportInputs& inputs) {
  return !inputs.demo && inputs.traces.empty() && inputs.measurements.empty() && inputs.policies.empty() &&
         inputs.metrics.empty();
}

Json MeasurementJson(const NamedMeasurements& measurements) {
  return {{"path", measurements.path}, {"rows", CellsJson(measurements.file)}};
}

}  // namespace

Result<ReportInputs> ReadReportInputs(const std::vector<std::string>& paths, const std::string& fallback) {
  ReportInputs inputs;
  for (const std::string& path : paths) DYNAMICCL_CHECK_OK(ReadInput(path, inputs));
  if (HoldsNothing(inputs)) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{}: a log alone makes no report", fmt::join(paths, ", ")),
        "give the job's .ctrace too; `dynamiccl why FILE` reads logs of NCCL");
  }
  DYNAMICCL_TRY(const Recogniser recogniser, RecogniserOf(inputs, fallback));
  for (NamedTrace& trace : inputs.traces)
    DYNAMICCL_CHECK_OK(CountTrace(recogniser, NameOfRun(inputs.traces, trace.path), trace));
  return inputs;
}

std::string RenderReport(const ReportInputs& inputs) {
  std::vector<HtmlSection> sections;
  if (inputs.demo) sections = DemoSections(*inputs.demo);
  const DemoResult* demo = inputs.demo ? &*inputs.demo : nullptr;
  AddRuns(inputs, sections);
  for (const NamedPolicy& policy : inputs.policies)
    sections.push_back(PolicyMap(policy, inputs.measurements));
  for (const NamedMeasurements& measurements : inputs.measurements) {
    for (HtmlSection& section : MeasurementSections(measurements, demo, inputs.topology))
      sections.push_back(std::move(section));
  }
  for (size_t i = 0; i < sections.size(); ++i) sections[i].id = fmt::format("part-{}", i + 1);
  return HtmlPage("DynamICCL report", sections);
}

Json ReportJson(const ReportInputs& inputs) {
  Json traces = Json::array(), runs = Json::array();
  const std::vector<RunReport> reports = RunsOf(inputs);
  for (size_t i = 0; i < reports.size(); ++i) {
    traces.push_back(SummaryJson(inputs.traces[i].path, reports[i].summary));
    runs.push_back(RunJson(reports[i], inputs.version_reasons));
  }
  Json measurements = Json::array();
  for (const NamedMeasurements& file : inputs.measurements) measurements.push_back(MeasurementJson(file));
  return {{"schema", 1},
          {"demo", inputs.demo ? Json(nlohmann::json(*inputs.demo)) : Json()},
          {"traces", traces},
          {"runs", runs},
          {"guard", GuardJson(GuardAccountOf(inputs.metrics))},
          {"measurements", measurements}};
}

std::map<std::string, std::string> ReportTables(const ReportInputs& inputs) {
  return RunTables(RunsOf(inputs), inputs.version_reasons);
}

}  // namespace dynamiccl
