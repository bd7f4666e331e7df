// SPDX-License-Identifier: Apache-2.0
// Merges the files of the processes of a recorded job: finds the parts by name, reads what is readable in
// each, checks that the ranks agree, writes one trace and removes the parts.
#include "tools/record/recorded_launch.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "traces/format/trace_calls.h"
#include "traces/format/trace_files.h"
#include "traces/format/trace_merge.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// The files of single processes (parts) have this ending, which distinguishes them from finished traces.
constexpr const char* kPartEnd = ".part";
// No host's name has this character. With a dot in its place, "run" would have the parts of "run.2" too.
constexpr char kPartStart = '~';

// Reads all readable parts. A process that was killed while it created its file leaves a file without a
// header: it is left out, and `warning` is set.
Result<std::vector<Trace>> ReadParts(const std::string& output, std::string& warning) {
  std::vector<Trace> traces;
  for (const std::string& part : FindParts(output)) {
    Result<Trace> trace = ReadTrace(part, TraceReading::kSalvage);
    if (trace)
      traces.push_back(std::move(*trace));
    else
      warning = trace.error().message;
  }
  if (!traces.empty()) return traces;
  return WithHint(
      MakeError(ErrorKind::kUnavailable, "no process called NCCL, so there is nothing in '{}'", output),
      kCallsNoNcclHint);
}

// Merges the traces of all processes. If they belong to several programs that were started one after the
// other as the same ranks, the parts stay.
Result<Trace> Merge(std::vector<Trace> traces, const std::string& output) {
  Result<Trace> merged = MergeTraces(std::move(traces));
  if (merged) return merged;
  return WithHint(
      MakeError(merged.error().kind, "'{}' is not written: {}; what each process recorded stays in '{}{}*{}'",
                output, merged.error().message, output, kPartStart, kPartEnd),
      "`dynamiccl trace merge` takes those of one program; a program that starts several is recorded one by "
      "one");
}

// Notes in each section how the rank ended according to the launcher. The launcher knows this only for ranks
// that it started itself.
void NoteEnds(const LaunchPlan& plan, const LaunchOutcome& outcome, Trace& trace) {
  if (plan.n_ranks == 0) return;
  for (const RankOutcome& rank : outcome.ranks) {
    const auto how = rank.signal ? ProcessEnd::How::kKilled : ProcessEnd::How::kExited;
    const auto number = static_cast<uint8_t>(rank.signal ? *rank.signal : rank.exit_code.value_or(0));
    for (TraceSection& section : trace.sections)
      if (section.rank == rank.rank) section.set_end({how, rank.ended_by_us, number});
  }
}

// Fills the counts of `launch`. The coverage is that of the first section: all ranks make the same calls.
void CountRecords(const Trace& trace, RecordedLaunch& launch) {
  launch.processes = trace.sections.size();
  if (!trace.sections.empty()) launch.coverage = LedgerOf(CallsOf(trace.sections.front()));
  launch.missing = trace.missing();
  for (const TraceSection& section : trace.sections) launch.records += section.records.size();
}

}  // namespace

std::vector<std::string> FindParts(const std::string& output) {
  const fs::path path = fs::absolute(output);
  const std::string start = path.filename().string() + kPartStart;
  std::vector<std::string> parts;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = name.starts_with(start) && name.find(kPartStart, start.size()) == std::string::npos;
    if (is_ours && name.ends_with(kPartEnd)) parts.push_back(entry.path().string());
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

std::string PartPattern(const std::string& output) {
  return fs::absolute(output).string() + kPartStart + "%h.%p" + kPartEnd;
}

void RemoveParts(const std::string& output) {
  std::error_code ignored;
  for (const std::string& part : FindParts(output)) fs::remove(part, ignored);
}

Result<RecordedLaunch> LaunchRecorded(const LaunchPlan& plan, const std::string& output,
                                      const LaunchJob& launch_job) {
  RemoveParts(output);
  RecordedLaunch launch;
  DYNAMICCL_TRY(launch.outcome, launch_job(plan));
  Result<std::vector<Trace>> parts = ReadParts(output, launch.warning);
  if (!parts) {
    RemoveParts(output);
    // A job that failed before its first call leaves nothing to merge; the job's own failure is reported
    // instead.
    if (!launch.outcome.ok()) return launch;
    return tl::unexpected<Error>(parts.error());
  }
  Result<Trace> merged = Merge(std::move(*parts), output);
  if (!merged && launch.outcome.ok()) return tl::unexpected<Error>(merged.error());
  if (!merged) {
    launch.warning = merged.error().message;
    return launch;
  }
  Trace& trace = *merged;
  NoteEnds(plan, launch.outcome, trace);
  CountRecords(trace, launch);
  if (const Status agree = CheckRanksAgree(trace); !agree) launch.warning = agree.error().message;
  DYNAMICCL_CHECK_OK(WriteTraceFile(output, trace));
  RemoveParts(output);
  std::error_code ignored;
  launch.bytes = fs::file_size(output, ignored);
  return launch;
}

}  // namespace dynamiccl
