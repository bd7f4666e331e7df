// SPDX-License-Identifier: Apache-2.0
#include "tools/record/recorded_launch.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "traces/format/trace_calls.h"
#include "traces/format/trace_merge.h"
#include "traces/format/trace_reader.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPartEnd = ".part";

// In the order of their names, so that a merge of the same files is always the same.
std::vector<fs::path> FindParts(const std::string& output) {
  const fs::path path = fs::absolute(output);
  const std::string start = path.filename().string() + ".";
  std::vector<fs::path> parts;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(start) && name.ends_with(kPartEnd)) parts.push_back(entry.path());
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

void RemoveParts(const std::string& output) {
  std::error_code ignored;
  for (const fs::path& part : FindParts(output)) fs::remove(part, ignored);
}

// A process that was killed while it created its file leaves one without a header: it is left out, with a
// warning.
Result<Trace> MergeParts(const std::string& output, std::string& warning) {
  std::vector<Trace> traces;
  for (const fs::path& part : FindParts(output)) {
    Result<Trace> trace = ReadTrace(part.string(), TraceReading::kSalvage);
    if (trace)
      traces.push_back(std::move(*trace));
    else
      warning = trace.error().message;
  }
  if (!traces.empty()) return MergeTraces(std::move(traces));
  return WithHint(
      MakeError(ErrorKind::kUnavailable, "no process called NCCL, so there is nothing in '{}'", output),
      "a program that links NCCL statically cannot be recorded; `dynamiccl doctor` says more");
}

void CountRecords(const Trace& trace, RecordedLaunch& launch) {
  launch.processes = trace.sections.size();
  if (!trace.sections.empty()) launch.coverage = LedgerOf(CallsOf(trace.sections.front()));
  for (const TraceSection& section : trace.sections) {
    launch.records += section.records.size();
    launch.lost += section.lost;
  }
}

}  // namespace

std::string PartPattern(const std::string& output) {
  return fs::absolute(output).string() + ".%h.%p" + kPartEnd;
}

Result<RecordedLaunch> LaunchRecorded(const LaunchPlan& plan, const std::string& output) {
  RemoveParts(output);
  RecordedLaunch launch;
  DYNAMICCL_TRY(launch.outcome, Launch(plan));
  const Result<Trace> merged = MergeParts(output, launch.warning);
  if (!merged) {
    RemoveParts(output);
    // A job that failed before its first call leaves nothing to merge: its own failure is what counts.
    if (!launch.outcome.ok()) return launch;
    return tl::unexpected<Error>(merged.error());
  }
  const Trace& trace = *merged;
  CountRecords(trace, launch);
  if (const Status agree = CheckRanksAgree(trace); !agree) launch.warning = agree.error().message;
  DYNAMICCL_CHECK_OK(WriteTrace(output, trace));
  RemoveParts(output);
  std::error_code ignored;
  launch.bytes = fs::file_size(output, ignored);
  return launch;
}

}  // namespace dynamiccl
