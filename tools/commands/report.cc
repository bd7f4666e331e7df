// SPDX-License-Identifier: Apache-2.0
// `dynamiccl report`: one offline HTML file from what a job, a sweep or a demo left, with JSON and CSV beside
// it.
#include "tools/report/report.h"

#include <fmt/format.h>

#include <filesystem>

#include "src/base/file_kind.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"

namespace dynamiccl {
namespace {

struct ReportOptions {
  std::vector<std::string> inputs;
  std::string output;
  std::string tables;
  std::string topology;
  bool json = false;
};

// Writes the CSV files into the folder, which is created.
Status WriteTables(const std::string& folder, const ReportInputs& inputs) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return MakeError(ErrorKind::kUnavailable, "cannot make '{}': {}", folder, failed.message());
  for (const auto& [name, text] : ReportTables(inputs))
    DYNAMICCL_CHECK_OK(WriteTextFile(folder + "/" + name, text));
  return {};
}

// Returns an error if --topology names no topology of the sweeps.
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
  ReportOptions given;
  line.app()
      .add_option("inputs", given.inputs,
                  "Any of: .ctrace, .measurements, .dcpolicy, .prom (DYNAMICCL_METRICS), .log (of the job), "
                  "demo.json")
      ->required();
  line.app().add_option("-o,--output", given.output, "HTML file to write");
  line.app().add_option("--csv", given.tables, "Folder for the tables as CSV");
  line.app().add_option(
      "--topology", given.topology,
      "Topology of the sweeps that the runs were on (default: all of the runs' ranks and nodes)");
  line.app().add_flag("--json", given.json, "The same as JSON on standard output (docs/formats/report.md)");
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (given.output.empty() && given.tables.empty() && !given.json) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl report: nothing to write"),
                    "name the file with -o report.html, a folder with --csv tables, or use --json");
  }
  DYNAMICCL_CHECK_OK(CheckOutputs({given.output}));
  DYNAMICCL_CHECK_OK(CheckOutputFolder(given.tables));
  DYNAMICCL_CHECK_OK(CheckIsNoInput(given.output, given.inputs));
  DYNAMICCL_TRY(ReportInputs read, ReadReportInputs(given.inputs, ShippedPolicy()));
  read.topology = given.topology;
  DYNAMICCL_CHECK_OK(CheckTopology(read));
  if (given.json) PrintJson(ReportJson(read));
  if (!given.tables.empty()) DYNAMICCL_CHECK_OK(WriteTables(given.tables, read));
  if (!given.output.empty()) DYNAMICCL_CHECK_OK(WriteTextFile(given.output, RenderReport(read)));
  if (!given.json) fmt::print("{}\n", given.output.empty() ? given.tables : given.output);
  return kExitOk;
}

}  // namespace dynamiccl
