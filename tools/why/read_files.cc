// SPDX-License-Identifier: Apache-2.0
#include "tools/why/read_files.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "tools/canary/known_issues.h"
#include "tools/hang/process_key.h"
#include "tools/receipt/receipt_text.h"
#include "tools/report/section_scan.h"
#include "traces/format/measurement_file.h"
#include "traces/format/merged_records.h"
#include "traces/format/trace_files.h"
#include "traces/format/trace_merge.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/kineto_events.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kMeasurements = R"("magic":"dynamiccl-measurements")";
// Files of DynamICCL that describe no job, by the ending of their names, with the command that reads them.
constexpr std::pair<std::string_view, std::string_view> kOtherFiles[] = {
    {".dcpolicy", "dynamiccl inspect"},
    {".dcsite", "dynamiccl inspect"},
    {".toml", "dynamiccl config check"},
    {".prom", "dynamiccl report"},
    {".html", "a browser"},
    {".pb", "dynamiccl trace import --from chakra"}};

Error NothingKnown(const std::string& path, Error error) {
  for (const auto& [ending, reader] : kOtherFiles) {
    if (path.ends_with(ending)) error.hint = fmt::format("`{}` reads such files", reader);
  }
  if (error.hint.starts_with(kNameFormat)) {
    error.hint =
        "what is read: traces and sweeps of DynamICCL, profiles of torch.profiler (kineto), dumps of "
        "PyTorch's Flight Recorder, logs of NCCL with NCCL_DEBUG=INFO (nccl-debug), output of nccl-tests, "
        "and more: docs/trace_importers.md";
  }
  return error;
}

// Returns the sentences for WhyInput::known_faults. Empty if the installation has no table of known issues.
std::vector<std::string> KnownFaults(const NcclLog& log) {
  const auto installation = FindInstallation();
  const auto known = installation ? ReadKnownIssues(*installation) : tl::unexpected(installation.error());
  std::vector<std::string> sentences;
  if (!known || log.releases.size() != 1) return sentences;
  const auto says = [&](const std::string& text) { return log.Find(text) != nullptr; };
  for (const KnownIssue& issue : IssuesInLog(*known, log.releases.front().release, says)) {
    const LogLine& line = *log.Find(issue.text);
    sentences.push_back(Describe(issue, fmt::format(", as {}:{} says", line.file, line.number)));
  }
  return sentences;
}

// Adds what NCCL's logs show apart from calls: settings that are not in effect, and known faults.
Status ReadLogs(WhyInput& input) {
  std::vector<std::string> logs;
  for (const WhyFile& file : input.files) {
    if (file.kind.starts_with(NcclDebugImporter().name())) logs.push_back(file.path);
  }
  if (logs.empty()) return {};
  DYNAMICCL_TRY(const Evidence evidence, ReadEvidence(logs, {}));
  for (const Receipt& receipt : WriteReceipts(evidence)) {
    if (receipt.standing == Standing::kNotInEffect)
      input.refuted_settings.push_back(ReceiptSentence(receipt));
  }
  input.known_faults = KnownFaults(evidence.log);
  return {};
}

// The traces of the files that were read.
struct ReadTraces {
  std::vector<Trace> traces;
  // For each trace, its place in WhyInput::files, and whether its records stay in the file.
  std::vector<size_t> file;
  std::vector<bool> described;
  // What to do about the last file that was left out and needs more than to be named; empty: there is none.
  std::string hint;
};

// Reads the descriptions of a trace that can be streamed, and checks the whole trace on the way. Returns
// nothing if the trace must be read as a whole. Only reading as a whole shows where a file is damaged, and
// reads a file that is still being written as it is at one moment.
std::optional<Trace> DescribedTrace(const std::string& path) {
  const auto sections = ScanSections(FileRecords(path), 0);
  if (!sections) return std::nullopt;
  Trace trace;
  for (const SectionScan& section : *sections) trace.sections.push_back(section.description);
  return trace;
}

// Reads a trace of DynamICCL. With `in_passes`, the records stay in the file if that is possible.
Status ReadOurs(const std::string& path, bool in_passes, WhyInput& input, ReadTraces& read) {
  std::optional<Trace> described = in_passes ? DescribedTrace(path) : std::nullopt;
  read.described.push_back(described.has_value());
  if (!described) {
    DYNAMICCL_TRY(described, ReadTraceFiles({path}, TraceReading::kSalvage));
  }
  input.files.push_back({path, "a trace of DynamICCL", {}, described->damage});
  read.traces.push_back(std::move(*described));
  return {};
}

// True if a file that begins with `head` is of a kind that is read.
bool IsKnown(const std::string& head) {
  const auto recognises = [&](const TraceImporter* importer) { return importer->Recognises(head); };
  return head.substr(0, head.find('\n')).find(kMeasurements) != std::string::npos || IsTraceOfOurs(head) ||
         std::ranges::any_of(AllImporters(), recognises);
}

// Warns that a file of a named folder is left out, and keeps a hint that is about this file.
void LeaveOut(const Error& error, ReadTraces& read) {
  spdlog::warn("left out: {}", error.message);
  if (!error.hint.empty() && !error.hint.starts_with(kNameFormat)) read.hint = error.hint;
}

// Reads one file into the input. If it is a trace, its records go to the end of `read`. `named` is false for
// a file of a named folder: a file of no known kind (a script, an archive, an empty log) is then left out
// with a warning.
Status ReadOne(const std::string& path, bool named, bool in_passes, WhyInput& input, ReadTraces& read) {
  Result<GzipStream> stream = GzipStream::Open(path);
  if (!stream && named) return tl::unexpected(stream.error());
  const std::string head = stream ? stream->Head(kHeadBytes) : "";
  if (!named && (!stream || !IsKnown(head))) {
    Error error = stream ? NotRecognised(path, head) : stream.error();
    if (head.empty()) error.hint.clear();  // the hint is about one empty file and does not help with a folder
    LeaveOut(error, read);
    return {};
  }
  if (head.empty()) return tl::unexpected(NotRecognised(path, head));
  if (head.substr(0, head.find('\n')).find(kMeasurements) != std::string::npos) {
    DYNAMICCL_TRY(input.measurements.emplace_back(), ReadMeasurementFile(path));
    input.files.push_back({path, "a sweep of DynamICCL", {}, {}});
    return {};
  }
  if (IsTraceOfOurs(head)) return ReadOurs(path, in_passes, input, read);
  Result<Imported> imported = ImportFile(path, "", {.needs_calls = false});
  if (!imported && NcclDebugImporter().Recognises(head)) {
    // A log without calls is still useful: a job that fails before its first call logs its settings and the
    // failure.
    input.imported = true;
    input.files.push_back({path, std::string(NcclDebugImporter().name()), {}, {imported.error().message}});
    return {};
  }
  if (!imported) return tl::unexpected(NothingKnown(path, imported.error()));
  input.imported = true;
  input.files.push_back({path, imported->format, std::move(imported->unfilled), std::move(imported->notes),
                         std::move(imported->frameworks)});
  if (imported->device) input.devices.push_back(*imported->device);
  if (imported->trace) {
    input.calls_are_logged = input.files.back().kind.starts_with(NcclDebugImporter().name());
    read.traces.push_back(std::move(*imported->trace));
    read.described.push_back(false);
  }
  if (imported->measurements) input.measurements.push_back(std::move(*imported->measurements));
  return {};
}

// Returns what shows that two files with traces are not of one job, such as "8 and 2 ranks"; empty if nothing
// does. Values that a file does not state are not compared.
std::string Contradiction(const WhyFile& file_a, const Trace& a, const WhyFile& file_b, const Trace& b) {
  if (file_a.kind != file_b.kind) {
    const auto name = [](const WhyFile& file) { return file.kind.substr(0, file.kind.find(':')); };
    return fmt::format("{} and {}", name(file_a), name(file_b));
  }
  if (a.sections.empty() || b.sections.empty()) return "";
  const TraceSection &first = a.sections.front(), &second = b.sections.front();
  if (first.world > 0 && second.world > 0 && first.world != second.world)
    return fmt::format("jobs of {} and {} ranks", first.world, second.world);
  if (!first.library.empty() && !second.library.empty() && first.library != second.library)
    return fmt::format("calls of {} and {}", first.library, second.library);
  for (const TraceSection& one : a.sections)
    for (const TraceSection& other : b.sections)
      if (one.rank >= 0 && one.rank == other.rank) return fmt::format("two traces of rank {}", one.rank);
  return "";
}

// Refuses a trace that holds a process twice, as a file does that was appended to itself.
Status CheckProcessesOnce(const std::string& path, const Trace& trace) {
  std::set<ProcessKey> seen;
  for (const TraceSection& section : trace.sections) {
    if (section.process_id == 0 || seen.insert(KeyOf(section)).second) continue;
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{}: process {} (rank {}) stands in it twice", path,
                  section.process_id, section.rank),
        "`dynamiccl trace merge` makes one trace of the files of one job's ranks, each given once");
  }
  return {};
}

// Refuses a folder that cannot be searched.
Status CheckFoldersOpen(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code none, failed;
    if (!std::filesystem::is_directory(path, none)) continue;
    std::filesystem::directory_iterator(path, failed);
    if (failed) return MakeError(ErrorKind::kUnavailable, "cannot open '{}': {}", path, failed.message());
  }
  return {};
}

// Compares each trace with all before it.
Status CheckOneJob(const std::vector<WhyFile>& files, const ReadTraces& read) {
  for (size_t i = 1; i < read.traces.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const WhyFile &one = files[read.file[j]], &other = files[read.file[i]];
      const std::string why = Contradiction(one, read.traces[j], other, read.traces[i]);
      if (!why.empty())
        return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} and {} are not of one job: {}", one.path,
                                  other.path, why),
                        "give one file of each rank of one job, or a single file");
    }
  }
  return {};
}

// True if a file lacks the size of a group, and the importer used `instead`.
bool AssumesGroupSize(const WhyInput& input, std::string_view instead) {
  return std::ranges::any_of(input.files, [&](const WhyFile& file) {
    return std::ranges::any_of(file.unfilled, [&](const UnfilledField& each) {
      return each.field == "group size" && each.instead == instead;
    });
  });
}

// Merges the traces of several files. With `in_passes`, records that were left in the files stay there.
Status MergeRead(ReadTraces read, bool in_passes, WhyInput& input) {
  DYNAMICCL_CHECK_OK(CheckOneJob(input.files, read));
  if (!in_passes) {
    DYNAMICCL_TRY(input.trace, MergeTraces(std::move(read.traces)));
    return {};
  }
  std::vector<std::string> damage;
  std::vector<std::unique_ptr<const RecordSource>> sources;
  for (size_t i = 0; i < read.traces.size(); ++i) {
    std::ranges::copy(read.traces[i].damage, std::back_inserter(damage));
    if (read.described[i])
      sources.push_back(std::make_unique<const FileRecords>(input.files[read.file[i]].path));
    else
      sources.push_back(std::make_unique<const OwnedRecords>(std::move(read.traces[i])));
  }
  DYNAMICCL_TRY(auto merged, MergedRecords::Of(std::move(sources)));
  input.trace = merged->outline();
  input.trace->damage = std::move(damage);
  input.streamed = std::move(merged);
  return {};
}

// Reads all files. With `in_passes`, the records of a trace stay in its files if it can be streamed.
Result<WhyInput> ReadJob(const std::vector<std::string>& paths, bool in_passes) {
  WhyInput input;
  ReadTraces read;
  DYNAMICCL_CHECK_OK(CheckFoldersOpen(paths));
  const std::vector<std::string> files = FilesOf(paths);
  if (files.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "{}: no file in it; folders in it are not searched", fmt::join(paths, ", ")),
                    "name the files, or the folder that holds them");
  for (const std::string& path : files) {
    const bool named = std::ranges::find(paths, path) != paths.end();
    DYNAMICCL_CHECK_OK(ReadOne(path, named, in_passes, input, read));
    read.file.resize(read.traces.size(), input.files.size() - 1);
  }
  if (input.files.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: no file in it of a kind that is read",
                              fmt::join(paths, ", ")),
                    read.hint.empty() ? "name one of the files to see what is wrong with it" : read.hint);
  for (size_t i = 0; i < read.traces.size(); ++i)
    DYNAMICCL_CHECK_OK(CheckProcessesOnce(input.files[read.file[i]].path, read.traces[i]));
  if (read.traces.size() > 1) {
    const Status merged = MergeRead(std::move(read), in_passes, input);
    if (!merged)
      return WithHint(tl::unexpected(merged.error()),
                      "give one file of each rank of one job, or a single file");
  } else if (read.traces.size() == 1) {
    if (read.described.front())
      input.streamed = std::make_shared<const FileRecords>(input.files[read.file.front()].path);
    input.trace = std::move(read.traces.front());
  }
  return input;
}

}  // namespace

std::string OtherBackend(const WhyInput& input) {
  const bool calls = input.trace && !input.trace->sections.empty();
  const std::string library = calls ? input.trace->sections.front().library : "";
  return std::ranges::count(kOtherBackends, library) > 0 ? library : "";
}

bool RanOnCpus(const WhyInput& input) {
  const bool has_calls = input.trace && !input.trace->sections.empty();
  return has_calls && input.devices.empty() && input.trace->sections.front().on_host();
}

bool IsProfileAlone(const WhyInput& input) {
  const auto is_profile = [](const WhyFile& file) { return file.kind.starts_with(KinetoImporter().name()); };
  return !input.trace && input.measurements.empty() && std::ranges::all_of(input.files, is_profile);
}

bool Lacks(const WhyInput& input, std::string_view field) {
  const auto lacks = [&](const WhyFile& file) {
    return std::ranges::any_of(file.unfilled, [&](const UnfilledField& each) { return each.field == field; });
  };
  return std::ranges::any_of(input.files, lacks);
}

bool HidesRanks(const WhyInput& input) {
  const auto unknown = [](const TraceSection& section) { return section.groups_unknown(); };
  return AssumesGroupSize(input, "1") || (input.trace && std::ranges::any_of(input.trace->sections, unknown));
}

bool MayHaveMoreRanks(const WhyInput& input) {
  return AssumesGroupSize(input, kHighestRank);
}

std::vector<std::string> FilesOf(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const auto begin = static_cast<std::ptrdiff_t>(files.size());
    std::error_code none;
    if (!std::filesystem::is_directory(path, none)) files.push_back(path);
    for (const auto& entry : std::filesystem::directory_iterator(path, none)) {
      if (entry.is_regular_file(none) && entry.path().extension() != ".html") files.push_back(entry.path());
    }
    std::sort(files.begin() + begin, files.end());
  }
  return files;
}

std::shared_ptr<const RecordSource> RecordsOf(const WhyInput& input) {
  return input.streamed ? input.streamed : std::make_shared<const MemoryRecords>(*input.trace);
}

Result<WhyInput> ReadJobFiles(const std::vector<std::string>& paths) {
  return ReadJob(paths, false);
}

Result<WhyInput> ReadWhyFiles(const std::vector<std::string>& paths) {
  DYNAMICCL_TRY(WhyInput input, ReadJob(paths, true));
  DYNAMICCL_CHECK_OK(ReadLogs(input));
  const bool says_nothing = !input.trace && input.measurements.empty() && input.known_faults.empty() &&
                            input.refuted_settings.empty();
  const auto log = std::ranges::find(input.files, NcclDebugImporter().name(), &WhyFile::kind);
  if (says_nothing && log != input.files.end()) {
    const Result<Imported> again = ImportFile(log->path, "");
    if (!again) return tl::unexpected(NothingKnown(log->path, again.error()));
  }
  return input;
}

}  // namespace dynamiccl
