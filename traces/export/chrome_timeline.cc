// SPDX-License-Identifier: Apache-2.0
// Format: "Trace Event Format" (Google). Times are microseconds since the earliest section's start; sections
// are aligned by the real time of their clock anchors.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/collective/size_class.h"
#include "traces/export/trace_export.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

using Json = nlohmann::json;

class Timeline {
 public:
  explicit Timeline(const Trace& trace) : trace_(trace) {
    start_ns_ = INT64_MAX;
    for (const TraceSection& section : trace.sections)
      start_ns_ = std::min(start_ns_, section.opened.realtime_ns);
  }

  std::string Format() {
    for (size_t i = 0; i < trace_.sections.size(); ++i)
      AddSection(static_cast<int64_t>(i), trace_.sections[i]);
    return Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events_)}}.dump() + "\n";
  }

 private:
  void AddSection(int64_t process, const TraceSection& section) {
    const SectionCalls calls = CallsOf(section);
    const int64_t offset = section.opened.realtime_ns - section.opened.monotonic_ns - start_ns_;
    Name("process_name", process, 0, fmt::format("rank {} on {}", section.rank, section.host));
    for (const auto& [number, info] : calls.communicators) {
      Name("thread_name", process, number,
           fmt::format("communicator {:#x}, {} ranks", info.id, info.n_ranks));
    }
    for (const TraceCall& call : calls.calls) AddCall(process, offset, call);
    for (const StepView& step : calls.steps) {
      events_.push_back({{"ph", "i"},
                         {"s", "p"},
                         {"pid", process},
                         {"tid", 0},
                         {"ts", Microseconds(step.marked_ns + offset)},
                         {"name", fmt::format("step {} {}", step.step, dynamiccl::Name(step.phase))}});
    }
  }

  void Name(const char* what, int64_t process, uint32_t thread, const std::string& name) {
    events_.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}});
  }

  void AddCall(int64_t process, int64_t offset, const TraceCall& call) {
    const CollectiveCall& c = call.issued.call;
    Json event = {{"pid", process},
                  {"tid", call.communicator},
                  {"ts", Microseconds(call.issued.issued_ns + offset)},
                  {"name", fmt::format("{} {}", dynamiccl::Name(c.collective), FormatBytes(c.bytes))},
                  {"args", Arguments(call)}};
    if (call.issued.duration_ns >= 0) {
      event["ph"] = "X";
      event["dur"] = Microseconds(call.issued.duration_ns);
    } else {
      event["ph"] = "i";
      event["s"] = "t";
    }
    events_.push_back(event);
    if (call.issued.duration_ns >= 0 && c.collective < Collective::kSendRecv && trace_.sections.size() > 1)
      AddFlow(event, c, process);
  }

  // The arrow of a collective starts at the first section and passes through the others.
  void AddFlow(const Json& slice, const CollectiveCall& call, int64_t process) {
    const bool last = process + 1 == static_cast<int64_t>(trace_.sections.size());
    Json flow = {{"ph", process == 0 ? "s"
                        : last       ? "f"
                                     : "t"},
                 {"name", "collective"},
                 {"cat", "collective"},
                 {"id", fmt::format("{:x}.{}.{}", call.communicator, call.call_number, call.index_in_group)},
                 {"pid", slice["pid"]},
                 {"tid", slice["tid"]},
                 {"ts", slice["ts"]}};
    if (last) flow["bp"] = "e";
    events_.push_back(std::move(flow));
  }

  static Json Arguments(const TraceCall& call) {
    const CollectiveCall& c = call.issued.call;
    Json arguments = {{"bytes", c.bytes},
                      {"type", dynamiccl::Name(c.data_type)},
                      {"op", dynamiccl::Name(c.op)},
                      {"call", c.call_number},
                      {"ranks", c.n_ranks}};
    if (call.issued.labelled_role != Role::kUnknown)
      arguments["role"] = dynamiccl::Name(call.issued.labelled_role);
    if (call.decision) {
      arguments["algorithm"] = dynamiccl::Name(call.decision->config.algorithm);
      arguments["protocol"] = dynamiccl::Name(call.decision->config.protocol);
      arguments["channels"] = call.decision->config.channels;
    }
    return arguments;
  }

  static double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000.0; }

  const Trace& trace_;
  int64_t start_ns_;
  Json events_ = Json::array();
};

}  // namespace

std::string ExportChromeTimeline(const Trace& trace) {
  return Timeline(trace).Format();
}

}  // namespace dynamiccl
