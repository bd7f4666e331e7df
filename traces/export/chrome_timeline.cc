// SPDX-License-Identifier: Apache-2.0
// Format: "Trace Event Format" (Google). Times are microseconds since the start of the earliest section. The
// phases ("ph") used are M for names, X for slices, i for instants, and s, t and f for arrows.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/collective/size_class.h"
#include "traces/export/trace_export.h"
#include "traces/format/matched_calls.h"
#include "traces/format/section_clock.h"

namespace dynamiccl {
namespace {

using Json = nlohmann::json;

// Formats one trace. All ranks' clocks are aligned by their sections' anchors.
class Timeline {
 public:
  explicit Timeline(const Trace& trace) : trace_(trace) {
    start_ns_ = INT64_MAX;
    for (const TraceSection& section : trace.sections) {
      start_ns_ = std::min(start_ns_, section.opened.realtime_ns);
      sections_.push_back(CallsOf(section));
      clocks_.emplace_back(section);
    }
  }

  std::string Format() {
    for (size_t i = 0; i < sections_.size(); ++i) AddSection(i);
    for (const MatchedCall& matched : MatchCalls(sections_)) AddArrows(matched);
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" + events_ + "\n]}\n";
  }

 private:
  // Adds a process with its threads, calls and step markers.
  void AddSection(size_t process) {
    const TraceSection& section = trace_.sections[process];
    Name("process_name", process, 0, fmt::format("rank {} on {}", section.rank, section.host));
    for (const auto& [number, info] : sections_[process].communicators) {
      Name("thread_name", process, number,
           fmt::format("communicator {:#x}, {} ranks", info.id, info.n_ranks));
    }
    for (const TraceCall& call : sections_[process].calls) AddCall(process, call);
    for (const StepView& step : sections_[process].steps) {
      Add({{"ph", "i"},
           {"s", "p"},
           {"pid", process},
           {"tid", 0},
           {"ts", Time(process, step.marked_ns)},
           {"name", fmt::format("step {} {}", step.step, dynamiccl::Name(step.phase))}});
    }
  }

  // Strings from other tools may contain invalid UTF-8; the invalid bytes are replaced.
  void Add(const Json& event) {
    events_ += (events_.empty() ? "\n" : ",\n") + event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void Name(const char* what, size_t process, uint32_t thread, const std::string& name) {
    Add({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}});
  }

  // Adds a slice for a call, or an instant if its duration is not known.
  void AddCall(size_t process, const TraceCall& call) {
    const CollectiveCall& c = call.issued.call;
    Json event = {{"pid", process},
                  {"tid", call.communicator},
                  {"ts", Time(process, call.issued.issued_ns)},
                  {"name", fmt::format("{} {}", dynamiccl::Name(c.collective), FormatBytes(c.bytes))},
                  {"args", Arguments(call)}};
    if (call.issued.duration_ns >= 0) {
      event["ph"] = "X";
      event["dur"] = Microseconds(call.issued.duration_ns);
    } else {
      event["ph"] = "i";
      event["s"] = "t";
    }
    Add(event);
  }

  // Adds an arrow from the rank that issued first to the rank that issued last, through the slices of the
  // other ranks.
  void AddArrows(const MatchedCall& matched) {
    std::vector<std::pair<double, CallPlace>> slices;
    for (const CallPlace& place : matched.ranks) {
      const IssuedCall& issued = sections_[place.section].calls[place.call].issued;
      if (issued.duration_ns >= 0) slices.emplace_back(Time(place.section, issued.issued_ns), place);
    }
    if (slices.size() < 2) return;
    std::stable_sort(slices.begin(), slices.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < slices.size(); ++i) {
      const CallPlace& place = slices[i].second;
      Json arrow = {{"ph", i == 0                   ? "s"
                           : i + 1 == slices.size() ? "f"
                                                    : "t"},
                    {"bp", "e"},
                    {"name", "collective"},
                    {"cat", "collective"},
                    {"id", fmt::format("{:x}.{}.{}", matched.communicator, matched.call_number,
                                       matched.index_in_group)},
                    {"pid", place.section},
                    {"tid", sections_[place.section].calls[place.call].communicator},
                    {"ts", slices[i].first}};
      Add(arrow);
    }
  }

  // Returns the details that a viewer shows for a selected call.
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

  // Microseconds from the start of the timeline.
  double Time(size_t section, int64_t monotonic_ns) const {
    return Microseconds(TimeBetween(clocks_[section].RealTime(monotonic_ns), start_ns_));
  }

  const Trace& trace_;
  int64_t start_ns_;
  std::vector<SectionCalls> sections_;
  std::vector<SectionClock> clocks_;
  std::string events_;
};

}  // namespace

Result<Exported> ExportChromeTimeline(const Trace& trace) {
  Exported exported{{{"", Timeline(trace).Format()}}, {}};
  if (trace.order_only())
    exported.notes.emplace_back(
        "places on the time axis only order the calls: the trace has no measured times of issue");
  return exported;
}

}  // namespace dynamiccl
