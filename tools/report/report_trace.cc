// SPDX-License-Identifier: Apache-2.0
#include "tools/report/report_trace.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "tools/report/run_timeline.h"
#include "traces/format/record_stream.h"
#include "traces/format/section_clock.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

bool IsKind(const TraceRecord& record, RecordKind kind) {
  return record.kind == static_cast<uint16_t>(kind);
}

bool IsCall(const TraceRecord& record) {
  return IsKind(record, RecordKind::kCollective) || IsKind(record, RecordKind::kPointToPoint);
}

// Removes the calls that were not issued in the stretch, the tuner's answers to them, and all other records
// but the communicators.
void Trim(const std::optional<StepSpan>& span, TraceSection& section) {
  const SectionClock clock(section);
  using CallKey = std::tuple<uint32_t, uint64_t, uint16_t>;
  const auto key = [](const TraceRecord& record) {
    return CallKey(record.communicator, record.call_number, record.index_in_group);
  };
  const auto is_shown = [&](const TraceRecord& record) {
    if (!span || !IsCall(record)) return false;
    const int64_t at = clock.RealTime(record.issued_ns);
    return at >= span->begin_ns && at < span->end_ns;
  };
  std::set<CallKey> shown;
  for (const TraceRecord& record : section.records) {
    if (is_shown(record)) shown.insert(key(record));
  }
  std::erase_if(section.records, [&](const TraceRecord& record) {
    if (IsKind(record, RecordKind::kDecision)) return !shown.contains(key(record));
    return !IsKind(record, RecordKind::kCommunicator) && !is_shown(record);
  });
  section.records.shrink_to_fit();
}

// Collects what a report needs. At the end of the first section it knows which stretch of the run is shown.
class ReportSink final : public RecordSink {
 public:
  Status BeginSection(const TraceSection& description, uint64_t records) override {
    trace_.sections.push_back(description);
    if (trace_.sections.size() == 1) trace_.sections.front().records.reserve(records);
    return {};
  }
  Status Take(std::span<const TraceRecord> records) override {
    if (trace_.sections.size() > kShownLanes) return {};
    std::vector<TraceRecord>& all = trace_.sections.back().records;
    all.insert(all.end(), records.begin(), records.end());
    return {};
  }
  Status EndSection(uint64_t /*missing*/) override {
    TraceSection& section = trace_.sections.back();
    if (trace_.sections.size() > 1)
      Trim(span_, section);
    else if (!section.order_only())
      span_ = StepSpanOf(section, CallsOf(section));
    return {};
  }
  Trace Take() { return std::move(trace_); }

 private:
  Trace trace_;
  std::optional<StepSpan> span_;
};

}  // namespace

Result<Trace> ReadTraceForReport(const std::string& path) {
  ReportSink sink;
  if (StreamTrace(path, sink)) return sink.Take();
  // Unfinished files and damage alike: reading the whole file tells the two apart and names the place.
  return ReadTrace(path);
}

}  // namespace dynamiccl
