// SPDX-License-Identifier: Apache-2.0
// Counts the calls, step marks and memory reports of a trace.
#include "tools/report/trace_summary.h"

#include <set>

#include "tools/report/choice_comparison.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

void AddSection(const TraceSection& section, TraceSummary& summary) {
  if (++summary.sections == 1) summary.library = section.library;
  summary.missing += section.missing();
  summary.closed = summary.closed && section.closed;
  summary.mirrored = summary.mirrored || section.mirrored();
  summary.order_only = summary.order_only || section.order_only();
  summary.groups_unknown = summary.groups_unknown || section.groups_unknown();
}

// Sets the ZeRO stage if all marks have the same.
void AddMarks(const StepMarks& steps, const std::set<ZeroStage>& stages, const SeenMemory& memory,
              TraceSummary& summary) {
  summary.steps = static_cast<int64_t>(steps.firsts().size());
  if (stages.size() == 1) summary.stage = static_cast<int>(*stages.begin());
  summary.least_free_bytes = memory.least_free_bytes;
  summary.memory_bytes = memory.total_bytes;
}

}  // namespace

void SummaryCounts::Take(const TraceCall& call) {
  ++sizes_[{call.issued.call.collective, call.issued.call.bytes}];
  if (!call.decision) return;
  const CollectiveConfig& config = call.decision->config;
  ++decisions_[{call.decision->decided_by, config.algorithm, config.protocol, config.channels}];
}

void SummaryCounts::AddTo(TraceSummary& summary) const {
  for (const auto& [size, calls] : sizes_) {
    const std::string name(Name(size.first));
    summary.calls += calls;
    summary.collectives[name].calls += calls;
    summary.collectives[name].bytes += size.second * static_cast<uint64_t>(calls);
    summary.sizes[{name, size.second}] += calls;
  }
  for (const auto& [decision, calls] : decisions_) {
    const auto& [by, algorithm, protocol, channels] = decision;
    const CollectiveConfig config{algorithm, protocol, channels};
    summary.decisions[{std::string(Name(by)), Name(config)}] += calls;
  }
}

TraceSummary SummaryOf(const std::vector<SectionScan>& sections, const SummaryCounts& counts,
                       const CoverageLedger& ledger) {
  TraceSummary summary;
  for (const SectionScan& section : sections) AddSection(section.description, summary);
  if (sections.empty()) return summary;
  const SectionScan& first = sections.front();
  counts.AddTo(summary);
  summary.coverage = ledger;
  AddMarks(first.steps, first.marked_stages, first.memory, summary);
  return summary;
}

Result<TraceSummary> ReadSummary(const RecordSource& source) {
  DYNAMICCL_TRY(const std::vector<SectionScan> sections, ScanSections(source, 1));
  if (sections.empty()) return TraceSummary{};
  const ExposedShares shares(sections.front().waited_shares);
  LedgerBuilder ledger(sections.front().kinds, shares);
  SummaryCounts counts;
  DYNAMICCL_CHECK_OK(PassCalls(source, sections, 1, [&](size_t, StreamedCall& call) {
    const TraceCall decoded = DecodedCall(call, sections[0].communicators.at(call.record.communicator));
    counts.Take(decoded);
    ledger.Take(decoded);
  }));
  return SummaryOf(sections, counts, ledger.ledger());
}

TraceSummary SummarizeTrace(const Trace& trace) {
  return SummarizeTrace(trace, trace.sections.empty() ? SectionCalls{} : CallsOf(trace.sections.front()));
}

TraceSummary SummarizeTrace(const Trace& trace, const SectionCalls& first) {
  TraceSummary summary;
  for (const TraceSection& section : trace.sections) AddSection(section, summary);
  SummaryCounts counts;
  for (const TraceCall& call : first.calls) counts.Take(call);
  counts.AddTo(summary);
  summary.coverage = LedgerOf(first);
  StepMarks steps;
  std::set<ZeroStage> stages;
  for (const StepView& mark : first.steps) {
    steps.Take(mark.step, mark.marked_ns);
    if (mark.stage != ZeroStage::kUnknown) stages.insert(mark.stage);
  }
  SeenMemory memory;
  for (const MemoryView& seen : first.memory) memory.Take(seen);
  AddMarks(steps, stages, memory, summary);
  return summary;
}

Json SummaryJson(const std::string& path, const TraceSummary& summary) {
  Json collectives = Json::object();
  for (const auto& [name, count] : summary.collectives) {
    collectives[name] = {{"calls", count.calls}, {"bytes", count.bytes}};
  }
  Json decisions = Json::array();
  for (const auto& [key, calls] : summary.decisions) {
    decisions.push_back({{"decided_by", key.first}, {"config", key.second}, {"calls", calls}});
  }
  Json memory;
  if (summary.memory_bytes > 0)
    memory = {{"least_free_bytes", summary.least_free_bytes}, {"bytes", summary.memory_bytes}};
  return {{"path", path},
          {"memory", memory},
          {"ranks", summary.sections},
          {"library", summary.library},
          {"calls", summary.calls},
          {"lost", summary.missing.lost},
          {"replaced", summary.missing.replaced},
          {"closed", summary.closed},
          {"mirrored", summary.mirrored},
          {"order_only", summary.order_only},
          {"groups_unknown", summary.groups_unknown},
          {"steps", summary.steps},
          {"stage", summary.stage},
          {"coverage", ToJson(summary.coverage)},
          {"collectives", collectives},
          {"decisions", decisions}};
}

}  // namespace dynamiccl
