// SPDX-License-Identifier: Apache-2.0
// Reads runs.jsonl, whose last line holds the hash of all others, and the traces that it names by their
// hashes.
#include "studies/agents/timing/timing_run.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "src/base/sha256.h"
#include "traces/format/matched_calls.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::agents {
namespace {

// Names in the order of the enumerators.
constexpr std::array<std::string_view, kTimingEvents> kNames = {"quiet",     "degraded", "congested",
                                                                "straggler", "one-link", "sizes"};

using Json = nlohmann::json;

Result<std::string> FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return MakeError(ErrorKind::kNotFound, "{}: cannot be read", path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Json ParseLine(std::string_view line) {
  return Json::parse(line, nullptr, /*allow_exceptions=*/false);
}

// Returns the lines between the first, which names the format, and the last, which has their hash.
Result<std::vector<Json>> CheckedLines(const std::string& path, const std::string& text) {
  const auto wrong = [&](const char* what) {
    return MakeError(ErrorKind::kCorrupt, "{}: {}: record the runs again", path, what);
  };
  const size_t end = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  if (end == std::string::npos || text.back() != '\n') return wrong("no end line");
  const Json last = ParseLine(std::string_view(text).substr(end + 1));
  if (!last.is_object() || last.value("sha256", "") != HexDigestOf(std::string_view(text).substr(0, end + 1)))
    return wrong("the hash of its last line does not fit");
  std::vector<Json> lines;
  for (size_t at = 0; at < end + 1;) {
    const size_t next = text.find('\n', at) + 1;
    lines.push_back(ParseLine(std::string_view(text).substr(at, next - at)));
    if (!lines.back().is_object()) return wrong("a line is no JSON object");
    at = next;
  }
  if (lines.front().value("magic", "") != "dynamiccl-timing-runs" || lines.front().value("version", 0) != 1)
    return wrong("not timing runs of version 1");
  lines.erase(lines.begin());
  return lines;
}

Result<TimingRun> ReadRun(const std::string& folder, const Json& line) {
  const std::string path = folder + "/" + line.value("trace", "");
  DYNAMICCL_TRY(const std::string bytes, FileText(path));
  if (HexDigestOf(bytes) != line.value("sha256", ""))
    return MakeError(ErrorKind::kCorrupt, "{}: not the trace that runs.jsonl names", path);
  DYNAMICCL_TRY(const Trace trace, ParseTrace(std::as_bytes(std::span(bytes)), path, TraceReading::kStrict));
  DYNAMICCL_TRY(const TimingEvent event, ParseTimingEvent(line.value("event", "")));
  TimingRun run = RunOf(trace, line.value("at_call", int64_t{-1}));
  run.event = event;
  run.fabric = line.value("fabric", "");
  run.factor = line.value("factor", 1.0);
  run.load = line.value("load", 0.0);
  run.ranks = line.value("ranks", 0);
  return run;
}

}  // namespace

std::string_view Name(TimingEvent event) {
  return kNames[static_cast<size_t>(event)];
}

Result<TimingEvent> ParseTimingEvent(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return MakeError(ErrorKind::kInvalidArgument, "\"{}\" is no event", name);
  return static_cast<TimingEvent>(found - kNames.begin());
}

size_t TimingRun::keys() const {
  std::set<uint64_t> keys;
  for (size_t i = 0; i < std::min(changed, calls.size()); ++i) keys.insert(calls[i].key);
  return std::max<size_t>(1, keys.size());
}

TimingRun RunOf(const Trace& trace, int64_t at_call) {
  std::vector<SectionCalls> sections;
  for (const TraceSection& section : trace.sections) sections.push_back(CallsOf(section));
  TimingRun run;
  const auto after = static_cast<uint64_t>(at_call);
  for (const MatchedCall& matched : MatchCalls(sections)) {
    if (matched.ranks.size() != sections.size()) continue;
    int64_t least = 0, most = 0;
    for (const CallPlace& place : matched.ranks) {
      const int64_t ns = sections[place.section].calls[place.call].issued.duration_ns;
      least = least == 0 ? ns : std::min(least, ns);
      most = std::max(most, ns);
      if (ns <= 0) least = -1;
    }
    if (least <= 0) continue;
    const CallPlace& first = matched.ranks.front();
    const IssuedCall& issued = sections[first.section].calls[first.call].issued;
    if (at_call < 0 || issued.call.call_number < after) run.changed = run.calls.size() + 1;
    run.calls.push_back({issued.call.bytes * 16 + static_cast<uint64_t>(issued.call.collective),
                         issued.issued_ns, static_cast<double>(least), static_cast<double>(most - least)});
  }
  return run;
}

Result<std::vector<TimingRun>> ReadTimingRuns(const std::string& folder) {
  const std::string path = folder + "/runs.jsonl";
  DYNAMICCL_TRY(const std::string text, FileText(path));
  DYNAMICCL_TRY(const std::vector<Json> lines, CheckedLines(path, text));
  std::vector<TimingRun> runs;
  for (const Json& line : lines) {
    DYNAMICCL_TRY(TimingRun run, ReadRun(folder, line));
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace dynamiccl::agents
