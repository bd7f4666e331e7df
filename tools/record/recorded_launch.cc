// SPDX-License-Identifier: Apache-2.0
#include "tools/record/recorded_launch.h"

#include <algorithm>
#include <filesystem>
#include <vector>

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

Result<Trace> MergeParts(const std::string& output) {
  std::vector<Trace> traces;
  for (const fs::path& part : FindParts(output)) {
    DYNAMICCL_TRY(Trace trace, ReadTrace(part.string(), TraceReading::kSalvage));
    traces.push_back(std::move(trace));
  }
  if (traces.empty()) {
    return WithHint(
        MakeError(ErrorKind::kUnavailable, "no process called NCCL, so there is nothing in '{}'", output),
        "a program that links NCCL statically cannot be recorded; `dynamiccl doctor` says more");
  }
  return MergeTraces(std::move(traces));
}

void CountRecords(const Trace& trace, RecordedLaunch& launch) {
  launch.processes = trace.sections.size();
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
  // A job that failed before its first call leaves nothing to merge: its own failure is what counts.
  if (!launch.outcome.ok() && FindParts(output).empty()) return launch;
  DYNAMICCL_TRY(const Trace trace, MergeParts(output));
  CountRecords(trace, launch);
  if (const Status agree = CheckRanksAgree(trace); !agree) launch.warning = agree.error().message;
  DYNAMICCL_CHECK_OK(WriteTrace(output, trace));
  RemoveParts(output);
  std::error_code ignored;
  launch.bytes = fs::file_size(output, ignored);
  return launch;
}

}  // namespace dynamiccl
