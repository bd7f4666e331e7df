// SPDX-License-Identifier: Apache-2.0
// `dynamiccl trace import|export|show|merge|recover|archive|unarchive|generate`: traces in and out.
// docs/trace_importers.md and docs/exports.md list the formats. `show` is the quick look at a file:
//
//   run.ctrace: 2 ranks, NCCL 2.30.7
//   tunable 100.0 % of the bytes (not all calls were timed)
//   858 calls of the first rank, 0 steps, 0 records lost, all processes ended in order
//     AllReduce           858 calls      148.44M
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "src/base/file_kind.h"
#include "src/collective/size_class.h"
#include "tools/command_table.h"
#include "tools/commands/collective_option.h"
#include "tools/commands/given_traces.h"
#include "tools/commands/trace_generate.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"
#include "tools/report/section_scan.h"
#include "tools/report/trace_summary.h"
#include "traces/export/trace_export.h"
#include "traces/format/equal_calls.h"
#include "traces/format/measurement_file.h"
#include "traces/format/merged_records.h"
#include "traces/format/operation_hasher.h"
#include "traces/format/trace_calls.h"
#include "traces/format/trace_files.h"
#include "traces/format/trace_merge.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

// The options of all actions except generate.
struct TraceOptions {
  std::vector<std::string> inputs;
  std::string output;
  std::string from;
  ImportOptions import;
  std::string to;
  bool json = false;
};

// ---- import ----

// Lists the fields that the imported file did not contain, and the values that were filled in.
void SayWhatIsMissing(const std::string& path, const Imported& imported) {
  for (const UnfilledField& field : imported.unfilled) {
    spdlog::info("{}: {} not in the file ({} times; written as {})", path, field.field, field.count,
                 field.instead);
  }
  for (const std::string& note : imported.notes) spdlog::info("{}: {}", path, note);
}

// Warns if an option had no effect, because the user would believe that it was followed.
void WarnOfUnusedSize(const std::string& path, const Imported& imported) {
  if (std::ranges::find(imported.unfilled, "group size", &UnfilledField::field) == imported.unfilled.end())
    spdlog::warn("{}: --group-size is not used: the file states the size of every group", path);
}

Json ReportOf(const std::string& path, const Imported& imported) {
  Json json{{"file", path}, {"unfilled", Json::array()}, {"notes", imported.notes}};
  for (const UnfilledField& field : imported.unfilled) {
    json["unfilled"].push_back({{"field", field.field}, {"count", field.count}, {"instead", field.instead}});
  }
  return json;
}

// Traces of several ranks become one. Files with measurements must be imported one at a time, because a
// measurement file names one machine.
Result<int> Import(const TraceOptions& options) {
  DYNAMICCL_CHECK_OK(CheckIsNoInput(options.output, options.inputs));
  std::vector<Trace> traces;
  std::optional<MeasurementFile> measurements;
  Json reports = Json::array();
  for (const std::string& path : options.inputs) {
    DYNAMICCL_TRY(Imported imported, ImportFile(path, options.from, options.import));
    if (options.json)
      reports.push_back(ReportOf(path, imported));
    else
      SayWhatIsMissing(path, imported);
    if (options.import.group_size > 0) WarnOfUnusedSize(path, imported);
    if (imported.trace)
      traces.push_back(std::move(*imported.trace));
    else
      measurements = std::move(imported.measurements);
  }
  if (measurements && options.inputs.size() > 1) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "dynamiccl trace import: several files with measurements"),
        "import them one by one; train and eval take several measurement files");
  }
  if (options.json) PrintJson({{"schema", 1}, {"imported", reports}});
  if (measurements) DYNAMICCL_CHECK_OK(WriteMeasurementFile(options.output, *measurements));
  if (measurements) return kExitOk;
  DYNAMICCL_TRY(const Trace merged, MergeTraces(std::move(traces)));
  DYNAMICCL_CHECK_OK(CheckRanksAgree(merged));
  DYNAMICCL_CHECK_OK(WriteTraceFile(options.output, merged));
  return kExitOk;
}

// ---- actions except import ----

// Writes an export of several files, with the folders that their names contain.
Status WriteFolder(const std::string& folder, const std::vector<ExportedFile>& files) {
  for (const ExportedFile& file : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / file.name;
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    if (failed)
      return MakeError(ErrorKind::kUnavailable, "cannot make '{}': {}", path.parent_path().string(),
                       failed.message());
    DYNAMICCL_CHECK_OK(WriteTextFile(path, file.content));
  }
  return {};
}

Json TraceJson(const Exported& exported, const TraceOptions& options) {
  Json files = Json::array();
  for (const ExportedFile& file : exported.files)
    files.push_back({{"name", file.name}, {"bytes", file.content.size()}});
  return {{"schema", 1},
          {"output", options.output},
          {"format", options.to},
          {"files", files},
          {"notes", exported.notes}};
}

Result<int> Export(const TraceOptions& options) {
  const bool is_folder = std::ranges::any_of(
      AllExporters(), [&](const TraceExporter& each) { return each.name == options.to && each.folder; });
  DYNAMICCL_CHECK_OK(is_folder ? CheckOutputFolder(options.output) : CheckOutputs({options.output}));
  DYNAMICCL_CHECK_OK(CheckIsNoInput(options.output, options.inputs));
  DYNAMICCL_TRY(const Trace trace, ReadGivenTraces(options.inputs));
  DYNAMICCL_TRY(const Exported exported, ExportTrace(trace, options.to));
  if (!options.json)
    for (const std::string& note : exported.notes) spdlog::info("{}", note);
  const bool one_file = exported.files.size() == 1 && exported.files[0].name.empty();
  if (options.output.empty() && (!one_file || options.json)) {
    const std::string why = one_file ? "--json is for standard output, and so is the export without --output"
                                     : fmt::format("'{}' is a folder of several files", options.to);
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}", why), "name it with --output");
  }
  if (!one_file)
    DYNAMICCL_CHECK_OK(WriteFolder(options.output, exported.files));
  else if (options.output.empty())
    std::fwrite(exported.files[0].content.data(), 1, exported.files[0].content.size(), stdout);
  else
    DYNAMICCL_CHECK_OK(WriteTextFile(options.output, exported.files[0].content));
  if (options.json) PrintJson(TraceJson(exported, options));
  return kExitOk;
}

void PrintTrace(const std::string& path, const TraceSummary& summary) {
  fmt::print("{}: {} rank{}{}, {}\n", path, summary.sections, summary.sections == 1 ? "" : "s",
             summary.mirrored ? " (recorded on one rank, mirrored in replay)" : "",
             summary.library.empty() ? "library unknown" : summary.library);
  if (summary.calls > 0) fmt::print("{}\n", Describe(summary.coverage));
  if (summary.groups_unknown)
    fmt::print("no sizes of some groups: each stands here with 1 rank; import again with --group-size\n");
  if (summary.order_only) fmt::print("no measured times of issue: those in the file only order the calls\n");
  fmt::print("{} calls of the first rank, {} steps, {}, {}\n", summary.calls, summary.steps,
             Describe(summary.missing),
             summary.closed ? "all processes ended in order" : "a process was killed or still runs");
  for (const auto& [name, count] : summary.collectives) {
    fmt::print("  {:<14} {:>8} calls {:>12}\n", name, count.calls, FormatBytes(count.bytes));
  }
  for (const auto& [decision, calls] : summary.decisions) {
    fmt::print("  {:<14} {:>8} calls {:>12}\n", decision.second, calls, "by " + decision.first);
  }
}

// Returns a hash of the operations of each rank, which is equal for a run and its replay.
Result<std::vector<uint64_t>> ReadOperations(const RecordSource& records) {
  DYNAMICCL_TRY(const std::vector<SectionScan> sections, ScanSections(records, SIZE_MAX));
  std::vector<uint64_t> hashes(sections.size(), OperationHasher().Finish());
  OperationHasher hasher;
  size_t current = 0;
  DYNAMICCL_CHECK_OK(PassCalls(records, sections, sections.size(), [&](size_t section, StreamedCall& call) {
    if (section != current) hashes[current] = hasher.Finish();
    current = section;
    hasher.Take(call.record.communicator, IssuedCallOf(call.record, {}));
  }));
  if (!hashes.empty()) hashes[current] = hasher.Finish();
  return hashes;
}

// Shows a summary of records, as JSON with the operations.
Status Show(const TraceOptions& options, const RecordSource& records, const TraceSummary& summary) {
  const std::string& path = options.inputs.front();
  if (!options.json) {
    PrintTrace(path, summary);
    return {};
  }
  DYNAMICCL_TRY(const std::vector<uint64_t> operations, ReadOperations(records));
  Json json{{"schema", 1}};
  json.update(SummaryJson(path, summary));
  for (const uint64_t hash : operations) json["operations"].push_back(fmt::format("{:016x}", hash));
  PrintJson(json);
  return {};
}

// Shows files whose ranks agree, without keeping their records. Returns false, or an error, and prints
// nothing where the whole trace must be read: the ranks may contradict each other, or a file cannot be
// streamed.
Result<bool> ShowStreamed(const TraceOptions& options) {
  for (const std::string& path : options.inputs) DYNAMICCL_CHECK_OK(CheckIsFile(path));
  DYNAMICCL_TRY(const auto records, RecordsOfFiles(options.inputs));
  DYNAMICCL_TRY(const TraceSummary summary, ReadSummary(*records));
  DYNAMICCL_TRY(const bool equal, RanksHaveEqualCalls(*records));
  if (equal) DYNAMICCL_CHECK_OK(Show(options, *records, summary));
  return equal;
}

// Runs `trace show`. Exit code 1: the ranks' records contradict each other.
Result<int> ShowTrace(const TraceOptions& options) {
  if (ShowStreamed(options).value_or(false)) return kExitOk;
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(options.inputs));
  DYNAMICCL_CHECK_OK(Show(options, MemoryRecords(trace), SummarizeTrace(trace)));
  const Status agree = CheckRanksAgree(trace);
  if (agree) return kExitOk;
  fmt::print(stderr, "{}", Describe(agree.error()));
  return kExitResultSaysNo;
}

// A pipe or a device has no size: `bytes` is then null.
Json WrittenJson(const std::string& path, uint64_t records) {
  std::error_code no_file;
  const auto bytes = std::filesystem::file_size(path, no_file);
  return {{"schema", 1}, {"output", path}, {"bytes", no_file ? Json() : Json(bytes)}, {"records", records}};
}

uint64_t CountRecords(const Trace& trace) {
  uint64_t records = 0;
  for (const TraceSection& section : trace.sections) records += section.records.size();
  return records;
}

void PrintWritten(const TraceOptions& options, const Trace& trace) {
  Json json = WrittenJson(options.output, CountRecords(trace));
  json["lost"] = trace.missing().lost;
  json["replaced"] = trace.missing().replaced;
  json["processes"] = trace.sections.size();
  PrintJson(json);
}

Result<int> Merge(const TraceOptions& options) {
  DYNAMICCL_TRY(const Trace trace, ReadGivenTraces(options.inputs));
  if (const Status agree = CheckRanksAgree(trace); !agree) {
    fmt::print(stderr, "{}", Describe(agree.error()));
    return kExitResultSaysNo;
  }
  DYNAMICCL_CHECK_OK(WriteTraceFile(options.output, trace));
  if (options.json) PrintWritten(options, trace);
  return kExitOk;
}

Result<int> Recover(const TraceOptions& options) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(options.inputs, TraceReading::kSalvage));
  for (const std::string& damage : trace.damage) spdlog::info("{}", damage);
  spdlog::info("{} records of {} processes are whole, {}", CountRecords(trace), trace.sections.size(),
               Describe(trace.missing(), ""));
  DYNAMICCL_CHECK_OK(WriteTraceFile(options.output, trace));
  if (options.json) PrintWritten(options, trace);
  return kExitOk;
}

Result<int> Archive(const TraceOptions& options) {
  DYNAMICCL_TRY(const uint64_t records, CopyTraceFiles(options.inputs, options.output, TraceForm::kArchive));
  const auto bytes = static_cast<double>(std::filesystem::file_size(options.output));
  spdlog::info("{} records, {:.2f} bytes each", records,
               bytes / static_cast<double>(std::max<uint64_t>(records, 1)));
  if (options.json) PrintJson(WrittenJson(options.output, records));
  return kExitOk;
}

Result<int> Unarchive(const TraceOptions& options) {
  DYNAMICCL_TRY(const uint64_t records, CopyTraceFiles(options.inputs, options.output, TraceForm::kByName));
  if (options.json) PrintJson(WrittenJson(options.output, records));
  return kExitOk;
}

// ---- options ----

// Lists the importers for the help.
std::string Formats() {
  std::string text;
  for (const TraceImporter* importer : AllImporters()) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", importer->name(), importer->sentence());
  }
  return text;
}

std::string ExportFormats() {
  std::string text;
  for (const TraceExporter& exporter : AllExporters()) {
    text += fmt::format("{}{}: {}{}", text.empty() ? "" : "; ", exporter.name, exporter.sentence,
                        exporter.folder ? " (a folder)" : "");
  }
  return text;
}

CLI::App* AddTraceAction(CLI::App& app, const char* name, const char* sentence, TraceOptions& options) {
  CLI::App* const action = app.add_subcommand(name, sentence);
  action->add_option("files", options.inputs, "Files to read; traces of several ranks are taken together")
      ->required();
  return action;
}

void AddOutput(CLI::App* action, TraceOptions& options) {
  action
      ->add_option("-o,--output", options.output,
                   "File to write (.ctrace; .ctracez for an archive, .jsonl for JSON lines)")
      ->required();
}

}  // namespace

Result<int> TraceCommand(CommandLine& line) {
  TraceOptions options;
  CLI::App& app = line.app();
  app.require_subcommand(1);
  CLI::App* const import = AddTraceAction(app, "import", "Read a file of another tool", options);
  import->add_option("--from", options.from, "Format (default: told by content). " + Formats());
  AddCollectiveOption(*import, options.import.collective);
  import
      ->add_option("--group-size", options.import.group_size,
                   "Ranks of each group whose size the file does not state")
      ->check(CLI::Range(1, 32767));
  import
      ->add_option("-o,--output", options.output,
                   "File to write: a trace, or .measurements where the file holds results")
      ->required();
  CLI::App* const exported = AddTraceAction(app, "export", "Write a trace for another tool", options);
  exported->add_option("--to", options.to, "Format. " + ExportFormats())->required();
  exported->add_option("-o,--output", options.output,
                       "File to write (default: standard output), or folder where the format is one");
  CLI::App* const show =
      AddTraceAction(app, "show", "Say what a trace holds and whether its ranks agree", options);
  CLI::App* const merge =
      AddTraceAction(app, "merge", "Put the traces of several ranks into one file", options);
  AddOutput(merge, options);
  CLI::App* const recover =
      AddTraceAction(app, "recover", "Take what is whole from a damaged or cut trace", options);
  AddOutput(recover, options);
  CLI::App* const archive =
      AddTraceAction(app, "archive", "Write traces compressed; every command reads them so", options);
  archive->add_option("-o,--output", options.output, "File to write (.ctracez)")->required();
  CLI::App* const unarchive = AddTraceAction(app, "unarchive", "Write an archive as a trace again", options);
  AddOutput(unarchive, options);
  import->add_flag("--json", options.json, "Say as JSON what the file did not tell");
  show->add_flag("--json", options.json, "As JSON");
  for (CLI::App* const writer : {exported, merge, recover, archive, unarchive})
    writer->add_flag("--json", options.json, "Say as JSON what was written");
  TraceGenerateOptions generate_options;
  CLI::App* const generate = AddTraceGenerate(app, generate_options);
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (exported->parsed()) return Export(options);
  // Copies are renamed into their place. The other actions also write into pipes and devices.
  const bool is_copy = archive->parsed() || unarchive->parsed();
  DYNAMICCL_CHECK_OK(is_copy ? CheckOutputs({options.output}) : CheckFolderOf(options.output));
  if (import->parsed()) return Import(options);
  if (show->parsed()) return ShowTrace(options);
  if (archive->parsed()) return Archive(options);
  if (unarchive->parsed()) return Unarchive(options);
  if (generate->parsed()) return TraceGenerate(generate_options);
  return merge->parsed() ? Merge(options) : Recover(options);
}

}  // namespace dynamiccl
