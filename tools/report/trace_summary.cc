// SPDX-License-Identifier: Apache-2.0
// Counts the calls, step marks and memory reports of a trace.
#include "tools/report/trace_summary.h"

#include <algorithm>
#include <set>

#include "tools/report/choice_comparison.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

void CountCall(const TraceCall& call, TraceSummary& summary) {
  const CollectiveCall& issued = call.issued.call;
  const std::string name(Name(issued.collective));
  ++summary.calls;
  ++summary.collectives[name].calls;
  summary.collectives[name].bytes += issued.bytes;
  ++summary.sizes[{name, issued.bytes}];
  if (!call.decision) return;
  ++summary.decisions[{std::string(Name(call.decision->decided_by)), Name(call.decision->config)}];
}

// Counts the training steps that the program marked. Sets the ZeRO stage if all marks have the same.
void ReadMarks(const std::vector<StepView>& marks, TraceSummary& summary) {
  std::set<uint64_t> steps;
  std::set<ZeroStage> stages;
  for (const StepView& mark : marks) {
    steps.insert(mark.step);
    if (mark.stage != ZeroStage::kUnknown) stages.insert(mark.stage);
  }
  summary.steps = static_cast<int64_t>(steps.size());
  if (stages.size() == 1) summary.stage = static_cast<int>(*stages.begin());
}

}  // namespace

TraceSummary SummarizeTrace(const Trace& trace) {
  return SummarizeTrace(trace, trace.sections.empty() ? SectionCalls{} : CallsOf(trace.sections.front()));
}

TraceSummary SummarizeTrace(const Trace& trace, const SectionCalls& first) {
  TraceSummary summary;
  summary.sections = trace.sections.size();
  for (const TraceSection& section : trace.sections) {
    summary.lost += section.lost;
    summary.closed = summary.closed && section.closed;
    summary.mirrored = summary.mirrored || section.mirrored();
  }
  summary.order_only = trace.order_only();
  if (trace.sections.empty()) return summary;
  summary.library = trace.sections.front().library;
  for (const TraceCall& call : first.calls) CountCall(call, summary);
  summary.coverage = LedgerOf(first);
  ReadMarks(first.steps, summary);
  for (const MemoryView& memory : first.memory) {
    const bool is_first = summary.memory_bytes == 0;
    summary.least_free_bytes =
        is_first ? memory.free_bytes : std::min(summary.least_free_bytes, memory.free_bytes);
    summary.memory_bytes = memory.total_bytes;
  }
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
          {"lost", summary.lost},
          {"closed", summary.closed},
          {"mirrored", summary.mirrored},
          {"order_only", summary.order_only},
          {"steps", summary.steps},
          {"stage", summary.stage},
          {"coverage", ToJson(summary.coverage)},
          {"collectives", collectives},
          {"decisions", decisions}};
}

}  // namespace dynamiccl
