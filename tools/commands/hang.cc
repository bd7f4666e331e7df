// SPDX-License-Identifier: Apache-2.0
// `dynamiccl hang`: why a job stands still, or stood still when it was killed, from the traces of its ranks.
// docs/hang.md explains the findings. One of them names its kind, its communicator, and then each rank's part
// in it:
//
//   behind: communicator 0x5ee4798c6c6ca159, 2 ranks
//     rank 1 did not issue call 6398: AllReduce of 8, double, max
//     rank 0 issued up to call 6398
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/hang/hang_checks.h"
#include "tools/hang/hang_findings.h"
#include "tools/hang/known_hangs.h"
#include "tools/hang/process_key.h"
#include "tools/hang/stopped_processes.h"
#include "tools/record/recorded_launch.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_files.h"
#include "traces/format/trace_header.h"
#include "traces/format/trace_reader.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

// Number of bytes at the beginning of a file that suffice to recognise a trace of DynamICCL.
constexpr size_t kHeadOfOurs = 256;
// The number of records that a thread keeps unless DYNAMICCL_TRACE_RECORDS says otherwise.
constexpr uint64_t kRecordsByDefault = 262144;

struct HangOptions {
  std::vector<std::string> inputs;
  // Number of the newest records of each thread that are read.
  uint64_t newest = 2048;
  bool json = false;
};

bool IsTraceName(const std::filesystem::path& path) {
  return path.extension() == ".ctrace" || path.extension() == ".ctracez" || path.extension() == ".part";
}

// Returns the traces of a folder. If it has none, returns all of its files, because dumps of PyTorch's Flight
// Recorder may have any name.
Result<std::vector<std::string>> FilesIn(const std::string& folder) {
  std::vector<std::string> traces, others;
  std::error_code failed, none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.is_regular_file(none)) (IsTraceName(entry.path()) ? traces : others).push_back(entry.path());
  if (failed) return MakeError(ErrorKind::kUnavailable, "cannot open '{}': {}", folder, failed.message());
  return traces.empty() ? others : traces;
}

// Returns the named files and those that FilesIn finds in named folders, sorted. While `dynamiccl record`
// runs, the files of its processes are returned in place of its output.
Result<std::vector<std::string>> TracesIn(const std::vector<std::string>& inputs) {
  std::vector<std::string> paths;
  const auto add = [&](const std::vector<std::string>& files) {
    paths.insert(paths.end(), files.begin(), files.end());
  };
  for (const std::string& input : inputs) {
    std::error_code none;
    if (std::filesystem::is_directory(input, none)) {
      DYNAMICCL_TRY(const std::vector<std::string> files, FilesIn(input));
      add(files);
      continue;
    }
    const std::vector<std::string> parts = FindParts(input);
    add(parts.empty() ? std::vector{input} : parts);
  }
  std::sort(paths.begin(), paths.end());
  if (!paths.empty()) return paths;
  return WithHint(MakeError(ErrorKind::kNotFound, "{}: no file in it", fmt::join(inputs, ", ")),
                  "record with DYNAMICCL_TRACE=folder/%r.ctrace; what it holds survives a hang and a kill");
}

// Returns true if a recorder writes the file. A job has thousands of such files, so only the first bytes are
// read.
bool IsOfRecorder(const std::string& path) {
  char first[sizeof(kTraceMagic)] = {};
  std::ifstream(path, std::ios::binary).read(first, sizeof(first));
  return std::equal(std::begin(first), std::end(first), std::begin(kTraceMagic));
}

// Reads a trace. Of a file that a recorder writes, only the `newest` records of each thread are read. An
// archive, or a file of another tool, is read completely.
Result<Trace> ReadTraceOrDump(const std::string& path, uint64_t newest) {
  if (IsOfRecorder(path)) return ReadTraceTail(path, newest);
  DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
  const std::string head = stream.Head(kHeadOfOurs);
  if (IsTraceOfOurs(head)) return ReadTraceFiles({path}, TraceReading::kSalvage);
  DYNAMICCL_TRY(Imported imported, ImportFile(path, ""));
  if (!imported.trace)
    return MakeError(ErrorKind::kInvalidArgument, "{}: times of single collectives, no calls of a job", path);
  return std::move(*imported.trace);
}

// Adds the processes of a file's trace. A process that was added before is left out, and `lost` says so. Two
// files may hold the same process, or one file may hold it twice.
void AddProcesses(const Trace& trace, const std::string& path, std::set<ProcessKey>& known, JobCalls& job,
                  std::vector<std::string>& lost) {
  for (const TraceSection& section : trace.sections) {
    if (section.process_id != 0 && !known.insert(KeyOf(section)).second) {
      lost.push_back(fmt::format("{}: process {} (rank {}) was read before, from this file or another one",
                                 path, section.process_id, section.rank));
      continue;
    }
    job.Add(section);
    NoteWhatStops(path, job.processes.back());
  }
}

// Reads all traces. A file that cannot be read is left out, so that what one rank left half-written does not
// hide the others. A warning names each such file, and what is lost of a file. The warnings are also added to
// `left_out`.
Result<JobCalls> ReadJob(const std::vector<std::string>& paths, uint64_t newest,
                         std::vector<std::string>& left_out) {
  JobCalls job;
  std::set<ProcessKey> known;
  std::string hint =
      "give the .ctrace files, or the dumps of PyTorch's Flight Recorder, that the ranks of one job left";
  for (const std::string& path : paths) {
    const Result<Trace> trace = ReadTraceOrDump(path, newest);
    if (!trace && !trace.error().hint.empty() && !trace.error().hint.starts_with(kNameFormat))
      hint = trace.error().hint;
    std::vector<std::string> lost = trace ? trace->damage : std::vector{trace.error().message};
    if (trace) AddProcesses(*trace, path, known, job, lost);
    for (const std::string& what : lost) spdlog::warn("left out: {}", what);
    left_out.insert(left_out.end(), lost.begin(), lost.end());
  }
  if (!job.processes.empty()) return job;
  return WithHint(MakeError(ErrorKind::kCorrupt, "none of {} files can be read", paths.size()), hint);
}

// One clause about the tuners' answers: equal on all ranks, different, or not recorded.
std::string DecisionsText(const HangDiagnosis& diagnosis) {
  const bool unlike =
      std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                  [](const auto& finding) { return finding.kind == HangKind::kDecisionsDiffer; });
  if (diagnosis.compared_decisions == 0) return "no tuner's answers were recorded on two ranks";
  return unlike ? "tuners' answers were not equal on all ranks"
                : fmt::format("tuners' answers to {} calls, the newest included, were equal on all ranks",
                              diagnosis.compared_decisions);
}

// Returns reports of NCCL faults that may have caused this hang. If the installation has no table of faults,
// returns none and warns; the findings about the ranks do not depend on the table.
std::vector<KnownIssue> LookUpKnownHangs(const JobCalls& job, const HangDiagnosis& diagnosis) {
  const auto known = FindInstallation().and_then(ReadKnownIssues);
  if (known) return KnownHangs(*known, job, diagnosis);
  spdlog::warn("known faults are not looked up: {}", known.error().message);
  return {};
}

void PrintHang(const JobCalls& job, const HangDiagnosis& diagnosis, const std::vector<KnownIssue>& known,
               bool all_read) {
  const char* between = "";
  for (const HangFinding& finding : diagnosis.findings) {
    if (finding.kind == HangKind::kStopped)
      fmt::print("{}{}: job of {} processes\n", between, Name(finding.kind), job.processes.size());
    else
      fmt::print("{}{}: communicator {:#x}, {} ranks\n", between, Name(finding.kind), finding.communicator,
                 job.communicators.at(finding.communicator).n_ranks);
    for (const std::string& line : finding.text) fmt::print("  {}\n", line);
    between = "\n";
  }
  if (diagnosis.findings.empty())
    fmt::print(
        "nothing differs: all ranks{} issued the same calls and returned from them\n"
        "  If the job stands still nevertheless, it waits outside of NCCL's functions: for a kernel, a "
        "link or itself.\n",
        all_read ? "" : " whose files could be read");
  if (!diagnosis.unmatched.empty())
    fmt::print(
        "\nnot compared: sends and receives of {}\n  The n-th send belongs to the n-th receive, and n is not "
        "known where records are missing.\n  `--newest {}` reads all that a recording keeps by default; "
        "DYNAMICCL_TRACE_RECORDS (or, for dumps,\n  TORCH_NCCL_TRACE_BUFFER_SIZE) lets the next one keep "
        "more.\n",
        RankList(diagnosis.unmatched), kRecordsByDefault);
  for (const KnownIssue& issue : known)
    fmt::print("\nknown: {}\n  It fits by release and by where the ranks stand.\n", Describe(issue, ""));
  fmt::print("\n{} processes, {} communicators, {} calls compared; {}\n", job.processes.size(),
             job.communicators.size(), diagnosis.compared_calls, DecisionsText(diagnosis));
}

Json KnownJson(const std::vector<KnownIssue>& known) {
  Json issues = Json::array();
  for (const KnownIssue& issue : known) {
    issues.push_back({{"id", issue.id},
                      {"title", issue.title},
                      {"url", issue.url},
                      {"where", issue.where},
                      {"remedy", issue.remedy},
                      {"free_again", issue.until ? Json(issue.until->text()) : Json()}});
  }
  return issues;
}

Json HangJson(const JobCalls& job, const HangDiagnosis& diagnosis, const std::vector<KnownIssue>& known,
              const std::vector<std::string>& left_out) {
  Json findings = Json::array();
  for (const HangFinding& finding : diagnosis.findings) {
    const auto communicator = job.communicators.find(finding.communicator);
    const bool of_job = finding.kind == HangKind::kStopped || communicator == job.communicators.end();
    findings.push_back({{"kind", Name(finding.kind)},
                        {"communicator", of_job ? Json() : Json(fmt::format("{:#x}", finding.communicator))},
                        {"communicator_ranks", of_job ? Json() : Json(communicator->second.n_ranks)},
                        {"call", finding.call_number},
                        {"ranks", finding.ranks},
                        {"text", finding.text}});
  }
  return {{"schema", 1},
          {"processes", job.processes.size()},
          {"communicators", job.communicators.size()},
          {"compared_calls", diagnosis.compared_calls},
          {"compared_decisions", diagnosis.compared_decisions},
          {"findings", findings},
          {"unmatched", diagnosis.unmatched},
          {"left_out", left_out},
          {"known_issues", KnownJson(known)}};
}

}  // namespace

Result<int> HangCommand(CommandLine& line) {
  HangOptions options;
  line.app()
      .add_option(
          "traces", options.inputs,
          "Traces of a job's ranks, the output of a `record` that still runs, dumps of PyTorch's Flight "
          "Recorder, or a folder of them")
      ->required()
      ->check(CLI::Validator(
          [](std::string& path) { return FindParts(path).empty() ? CLI::ExistingPath(path) : std::string(); },
          "PATH"));
  line.app()
      .add_option("--newest", options.newest, "Records of each thread to look at, from its last one back")
      ->check(CLI::Range(uint64_t{16}, uint64_t{1} << 32))
      ->capture_default_str();
  line.app().add_flag("--json", options.json, "JSON on standard output");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const std::vector<std::string> paths, TracesIn(options.inputs));
  std::vector<std::string> left_out;
  DYNAMICCL_TRY(const JobCalls job, ReadJob(paths, options.newest, left_out));
  const HangDiagnosis diagnosis = DiagnoseHang(job);
  const std::vector<KnownIssue> known = LookUpKnownHangs(job, diagnosis);
  if (options.json)
    PrintJson(HangJson(job, diagnosis, known, left_out));
  else
    PrintHang(job, diagnosis, known, left_out.empty());
  return diagnosis.findings.empty() ? kExitOk : kExitResultSaysNo;
}

}  // namespace dynamiccl
