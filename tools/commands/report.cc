// SPDX-License-Identifier: Apache-2.0
// `dynamiccl report`: one offline HTML file from what a job, a sweep or a demo left, with JSON and CSV beside
// it.
#include "tools/report/report.h"

#include <fmt/format.h>

#include <filesystem>

#include "tools/command_table.h"
#include "tools/exit_code.h"

namespace dynamiccl {
namespace {

struct ReportWords {
  std::vector<std::string> inputs;
  std::string output;
  std::string tables;
  std::string topology;
  bool json = false;
};

Status WriteTables(const std::string& folder, const ReportInputs& inputs) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return MakeError(ErrorKind::kUnavailable, "cannot make '{}': {}", folder, failed.message());
  for (const auto& [name, text] : ReportTables(inputs))
    DYNAMICCL_CHECK_OK(WriteTextFile(folder + "/" + name, text));
  return {};
}

Status CheckTopology(const ReportInputs& inputs) {
  if (inputs.topology.empty()) return {};
  std::string known;
  for (const NamedMeasurements& sweep : inputs.measurements) {
    for (const MeasurementContext& context : sweep.file.contexts) {
      if (context.topology == inputs.topology) return {};
      known += (known.empty() ? "" : ", ") + context.topology;
    }
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "no sweep was made on '{}'", inputs.topology),
                  known.empty() ? "give a .measurements file too" : "there are: " + known);
}

}  // namespace

Result<int> ReportCommand(CommandLine& line) {
  ReportWords words;
  line.app()
      .add_option("inputs", words.inputs,
                  "Any of: .ctrace, .measurements, .dcpolicy, .prom (DYNAMICCL_METRICS), .log (of the job), "
                  "demo.json")
      ->required();
  line.app().add_option("-o,--output", words.output, "HTML file to write");
  line.app().add_option("--csv", words.tables, "Folder for the tables as CSV");
  line.app().add_option(
      "--topology", words.topology,
      "Topology of the sweeps that the runs were on (default: all of the runs' ranks and nodes)");
  line.app().add_flag("--json", words.json, "The same as JSON on standard output (docs/formats/report.md)");
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (words.output.empty() && words.tables.empty() && !words.json) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl report: nothing to write"),
                    "name the file with -o report.html, a folder with --csv tables, or use --json");
  }
  DYNAMICCL_TRY(ReportInputs read, ReadReportInputs(words.inputs));
  read.topology = words.topology;
  DYNAMICCL_CHECK_OK(CheckTopology(read));
  if (words.json) PrintJson(ReportJson(read));
  if (!words.tables.empty()) DYNAMICCL_CHECK_OK(WriteTables(words.tables, read));
  if (!words.output.empty()) DYNAMICCL_CHECK_OK(WriteTextFile(words.output, RenderReport(read)));
  if (!words.json) fmt::print("{}\n", words.output.empty() ? words.tables : words.output);
  return kExitOk;
}

}  // namespace dynamiccl
