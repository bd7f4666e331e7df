// SPDX-License-Identifier: Apache-2.0
// Format: what nccl-tests 2.19 writes with -J, as far as a trace has the information. Times are microseconds.
// A file is one run: a collective on a number of ranks. A row is one size, type, operator and root.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "src/base/counted.h"
#include "src/base/statistics.h"
#include "traces/export/trace_export.h"
#include "traces/format/matched_calls.h"

namespace dynamiccl {
namespace {

using Json = nlohmann::ordered_json;

// One row of nccl-tests.
struct RowKey {
  uint64_t bytes;
  DataType data_type;
  ReduceOp op;
  int32_t root;
  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};
// One run of nccl-tests: a program and a number of ranks.
using RunKey = std::pair<Collective, int32_t>;
// The durations of all calls of each row, in microseconds.
using Run = std::map<RowKey, std::vector<double>>;

// The name of the test without "_perf".
const char* ProgramOf(Collective collective) {
  switch (collective) {
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kReduce:
      return "reduce";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    default:
      return "all_reduce";
  }
}

// The time of a collective is the shortest of its durations: the rank that came last did not wait for another
// rank.
double TimeOf(const MatchedCall& matched, const std::vector<SectionCalls>& sections) {
  int64_t least = -1;
  for (const CallPlace& place : matched.ranks) {
    const int64_t duration = sections[place.section].calls[place.call].issued.duration_ns;
    if (duration > 0 && (least < 0 || duration < least)) least = duration;
  }
  return static_cast<double>(least) / 1000.0;
}

// The summary of a row. Bandwidths are in GB/s.
Json MeanJson(uint64_t bytes, double mean, double bus_factor) {
  const double bandwidth = static_cast<double>(bytes) / (mean * 1e3);
  return {{"time", mean}, {"alg_bw", bandwidth}, {"bus_bw", bandwidth * bus_factor}, {"nwrong", nullptr}};
}

// The times of the single calls of a row. For nccl-tests p50 is the upper of the two middle values.
Json Each(const std::vector<double>& times, double mean) {
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  return {{"skipped_iterations", 0},
          {"min_us", sorted.front()},
          {"max_us", sorted.back()},
          {"avg_us", mean},
          {"p50_us", sorted[sorted.size() / 2]},
          {"times_us", times}};
}

Json RowOf(const RunKey& run, const RowKey& key, const std::vector<double>& times) {
  const uint64_t element = ElementBytes(key.data_type);
  const bool reduces = run.first != Collective::kAllGather && run.first != Collective::kBroadcast;
  const bool per_rank = run.first == Collective::kAllGather || run.first == Collective::kReduceScatter;
  const uint64_t share = per_rank ? static_cast<uint64_t>(run.second) : 1;
  const double mean = Mean(times);
  return {{"size", key.bytes},
          {"count", element == 0 ? 0 : key.bytes / element / share},
          {"type", std::string(Name(key.data_type))},
          {"redop", reduces ? std::string(Name(key.op)) : "none"},
          {"root", key.root},
          {"out_of_place", MeanJson(key.bytes, mean, BusBandwidthFactor(run.first, run.second))},
          {"out_of_place_per_iter", Each(times, mean)}};
}

// "NCCL 2.28.9" as NCCL_VERSION_CODE, which nccl-tests writes; null for any other text.
Json VersionCode(const std::string& library) {
  int major = 0, minor = 0, patch = 0;
  if (std::sscanf(library.c_str(), "NCCL %d.%d.%d", &major, &minor, &patch) != 3) return nullptr;
  return major * 10000 + minor * 100 + patch;
}

// Builds the JSON document of one run.
Json FileOf(const RunKey& key, const Run& run, const TraceSection& section) {
  Json results = Json::array();
  Json devices = Json::array();
  for (const auto& [row, times] : run) results.push_back(RowOf(key, row, times));
  for (int32_t rank = 0; rank < key.second; ++rank) devices.push_back({{"rank", rank}});
  return {{"version", "dynamiccl trace export"},
          {"args", {fmt::format("{}_perf", ProgramOf(key.first))}},
          {"nccl_version", VersionCode(section.library)},
          {"config", {{"devices", devices}}},
          {"results", results}};
}

}  // namespace

Result<Exported> ExportNcclTests(const Trace& trace) {
  std::vector<SectionCalls> sections;
  for (const TraceSection& section : trace.sections) sections.push_back(CallsOf(section));
  std::map<RunKey, Run> runs;
  uint64_t untimed = 0;
  for (const MatchedCall& matched : MatchCalls(sections)) {
    const IssuedCall& issued = sections[matched.ranks[0].section].calls[matched.ranks[0].call].issued;
    const double time = TimeOf(matched, sections);
    if (time <= 0 || issued.call.bytes == 0 || issued.call.n_ranks < 1) {
      ++untimed;
      continue;
    }
    runs[{issued.call.collective, issued.call.n_ranks}]
        [{issued.call.bytes, issued.call.data_type, issued.call.op, issued.root_or_peer}]
            .push_back(time);
  }
  Exported exported;
  for (const auto& [key, run] : runs) {
    exported.files.push_back(
        {fmt::format("{}_perf.{}.json", ProgramOf(key.first), key.second),
         FileOf(key, run, trace.sections[0]).dump(1, ' ', false, Json::error_handler_t::replace) + "\n"});
  }
  if (untimed > 0)
    exported.notes.push_back(fmt::format("{} left out: no duration", Counted(untimed, "collective")));
  return exported;
}

}  // namespace dynamiccl
