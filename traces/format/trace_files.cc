// SPDX-License-Identifier: Apache-2.0
// Files are streamed where their forms allow it. Everything else is read into memory, merged and written.
#include "traces/format/trace_files.h"

#include <algorithm>
#include <filesystem>

#include "traces/format/json_lines.h"
#include "traces/format/merged_records.h"
#include "traces/format/record_stream.h"
#include "traces/format/section_header.h"
#include "traces/format/trace_archive.h"
#include "traces/format/trace_json.h"
#include "traces/format/trace_merge.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

bool IsArchiveName(const std::string& path) {
  return path.ends_with(".ctracez");
}
bool IsJsonName(const std::string& path) {
  return path.ends_with(".jsonl");
}

// Passes records on and counts them.
class CountingSink final : public RecordSink {
 public:
  explicit CountingSink(RecordSink& to) : to_(to) {}
  Status BeginSection(const TraceSection& description, uint64_t records) override {
    return to_.BeginSection(description, records);
  }
  Status Take(std::span<const TraceRecord> records) override {
    count += records.size();
    return to_.Take(records);
  }
  Status EndSection(uint64_t missing) override { return to_.EndSection(missing); }

  uint64_t count = 0;

 private:
  RecordSink& to_;
};

// Streams records into a file and returns their number.
Result<uint64_t> CopyStreamTo(const RecordSource& from, const std::string& to, bool archive) {
  DYNAMICCL_TRY(const auto writer, archive ? CreateArchive(to) : CreateTrace(to));
  CountingSink sink(*writer);
  DYNAMICCL_CHECK_OK(from.Pass(sink));
  DYNAMICCL_CHECK_OK(writer->Finish());
  return sink.count;
}

// Copies through a temporary file, so that an existing file at `to` stays until the copy is complete.
Result<uint64_t> CopyStream(const RecordSource& from, const std::string& to, bool archive) {
  const std::string part = to + ".part";
  const auto copied = CopyStreamTo(from, part, archive);
  std::error_code failure;
  if (copied)
    std::filesystem::rename(part, to, failure);
  else
    std::filesystem::remove(part, failure);
  if (copied && failure) return MakeError(ErrorKind::kUnavailable, "{}: {}", to, failure.message());
  return copied;
}

// True if both paths exist and name the same file, which cannot be streamed into itself.
bool SameFile(const std::string& a, const std::string& b) {
  std::error_code none;
  return std::filesystem::equivalent(a, b, none);
}

// True if the bytes begin with the magic of gzip (RFC 1952, 2.3.1).
bool IsGzip(const std::string& content) {
  return content.size() > 1 && content[0] == '\x1F' && content[1] == '\x8B';
}

}  // namespace

Result<Trace> ReadTraceFiles(const std::vector<std::string>& paths, TraceReading reading) {
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    DYNAMICCL_TRY(const std::string content, ReadWholeFile(path));
    if (IsGzip(content))
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "{}: a trace compressed with gzip is not read", path),
          "unpack it first: gunzip FILE; `dynamiccl trace archive` writes smaller files that are read");
    if (content.starts_with('{')) {
      if (content.substr(0, content.find('\n')).find(R"("magic":"dynamiccl-trace")") == std::string::npos)
        return WithHint(MakeError(ErrorKind::kCorrupt, "{}: JSON, but no trace of DynamICCL", path),
                        kHintForOtherFiles);
      DYNAMICCL_TRY(traces.emplace_back(), ParseTraceJson(content, path));
    } else {
      DYNAMICCL_TRY(traces.emplace_back(), ParseTrace(std::as_bytes(std::span(content)), path, reading));
    }
  }
  if (traces.size() == 1) return std::move(traces[0]);
  return MergeTraces(std::move(traces));
}

Status WriteTraceFile(const std::string& path, const Trace& trace) {
  if (IsArchiveName(path)) return WriteTraceArchive(path, trace);
  if (!IsJsonName(path)) return WriteTrace(path, trace);
  DYNAMICCL_TRY(const std::string text, FormatTraceJson(trace));
  return WriteWholeFile(path, text);
}

Result<uint64_t> CopyTraceFiles(const std::vector<std::string>& from, const std::string& to, TraceForm form) {
  const bool archive = form == TraceForm::kArchive || IsArchiveName(to);
  const auto is_target = [&](const std::string& path) { return SameFile(path, to); };
  if ((archive || !IsJsonName(to)) && std::ranges::none_of(from, is_target)) {
    if (const auto streamed = RecordsOfFiles(from)) {
      auto copied = CopyStream(**streamed, to, archive);
      if (copied || copied.error().kind != ErrorKind::kUnsupported) return copied;
    }
  }
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(from));
  DYNAMICCL_CHECK_OK(archive ? WriteTraceArchive(to, trace) : WriteTraceFile(to, trace));
  uint64_t records = 0;
  for (const TraceSection& section : trace.sections) records += section.records.size();
  return records;
}

}  // namespace dynamiccl
