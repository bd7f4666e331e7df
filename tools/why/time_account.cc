// SPDX-License-Identifier: Apache-2.0
#include "tools/why/time_account.h"

#include <algorithm>
#include <map>

#include "src/base/statistics.h"
#include "traces/format/matched_calls.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// When fewer calls than this share are timed, no statement is made about the time in collectives.
constexpr double kLeastTimed = 0.9;
constexpr size_t kLeastMatched = 16;
constexpr double kMsOfNs = 1e-6;
constexpr double kUsOfNs = 1e-3;

std::vector<CallKind> KindsOf(const SectionCalls& section) {
  std::map<std::tuple<Collective, uint64_t, int>, std::vector<double>> times;
  for (const TraceCall& call : section.calls) {
    const CollectiveCall& c = call.issued.call;
    const bool pairs = IsOneSided(c.collective) || c.collective == Collective::kSendRecv;
    if (call.issued.duration_ns <= 0 || pairs) continue;
    const int n_ranks = section.communicators.at(call.communicator).n_ranks;
    times[{c.collective, c.bytes, n_ranks}].push_back(static_cast<double>(call.issued.duration_ns));
  }
  std::vector<CallKind> kinds;
  for (const auto& [key, all] : times) {
    const auto& [collective, bytes, n_ranks] = key;
    kinds.push_back({collective, bytes, n_ranks, all.size(),
                     Mean(all) * static_cast<double>(all.size()) * kMsOfNs, Median(all) * kUsOfNs,
                     *std::ranges::max_element(all) * kUsOfNs});
  }
  std::ranges::stable_sort(kinds, std::ranges::greater{}, &CallKind::total_ms);
  return kinds;
}

// Length of the union of all intervals.
int64_t Covered(std::vector<CallInterval> intervals) {
  std::ranges::sort(intervals, {}, &CallInterval::start);
  int64_t covered = 0, end = INT64_MIN;
  for (const CallInterval& one : intervals) {
    covered += std::max<int64_t>(0, one.end - std::max(one.start, end));
    end = std::max(end, one.end);
  }
  return covered;
}

int64_t SpanOf(const std::vector<CallInterval>& intervals) {
  int64_t begin = INT64_MAX, end = INT64_MIN;
  for (const CallInterval& one : intervals) {
    begin = std::min(begin, one.start);
    end = std::max(end, one.end);
  }
  return std::max<int64_t>(0, intervals.empty() ? 0 : end - begin);
}

// Adds up the time that each rank waits inside its calls. In each call, the rank that comes last has the
// shortest time, because it waits for nobody. Every other rank waited for the difference between its own time
// and the shortest one.
class WaitSums {
 public:
  explicit WaitSums(const std::vector<SectionCalls>& sections)
      : sections_(sections), waited_ns_(sections.size()), last_(sections.size()) {}

  void Add(const MatchedCall& matched) {
    if (matched.ranks.size() != sections_.size()) return;
    int64_t least = INT64_MAX;
    size_t last = 0;
    for (const auto& [section, call] : matched.ranks) {
      const int64_t duration = DurationOf(section, call);
      if (duration <= 0) return;
      if (duration < least) last = section;
      least = std::min(least, duration);
    }
    for (const auto& [section, call] : matched.ranks)
      waited_ns_[section] += DurationOf(section, call) - least;
    ++last_[last];
    ++calls_;
  }

  std::optional<RankWaits> Result(const Trace& trace, int64_t span_ns) const {
    if (calls_ < kLeastMatched || span_ns <= 0) return std::nullopt;
    const auto late = std::ranges::max_element(last_);
    RankWaits waits;
    waits.late_rank = trace.sections[static_cast<size_t>(late - last_.begin())].rank;
    waits.late_share = static_cast<double>(*late) / static_cast<double>(calls_);
    waits.waited_share = Mean(waited_ns_) / static_cast<double>(span_ns);
    waits.calls = calls_;
    return waits;
  }

 private:
  int64_t DurationOf(size_t section, size_t call) const {
    return sections_[section].calls[call].issued.duration_ns;
  }

  const std::vector<SectionCalls>& sections_;
  std::vector<int64_t> waited_ns_;
  std::vector<size_t> last_;
  size_t calls_ = 0;
};

}  // namespace

double CallKind::BusBandwidth() const {
  return median_us <= 0
             ? 0
             : static_cast<double>(bytes) * BusBandwidthFactor(collective, n_ranks) / (median_us * 1e3);
}

TimeAccount TimesOf(const Trace& trace, const std::vector<SectionCalls>& sections) {
  TimeAccount account;
  if (sections.empty()) return account;
  const SectionCalls& first = sections.front();
  account.kinds = KindsOf(first);
  if (trace.order_only() || first.calls.empty()) return account;
  const std::vector<CallInterval> intervals = IntervalsOf(first);
  const int64_t span_ns = SpanOf(intervals);
  account.span_ms = static_cast<double>(span_ns) * kMsOfNs;
  const auto timed =
      std::ranges::count_if(first.calls, [](const TraceCall& call) { return call.issued.duration_ns > 0; });
  const auto calls = static_cast<double>(first.calls.size());
  if (calls > 1 && static_cast<double>(timed) >= kLeastTimed * calls && span_ns > 0)
    account.busy_share = static_cast<double>(Covered(intervals)) / static_cast<double>(span_ns);
  if (sections.size() < 2) return account;
  WaitSums waits(sections);
  for (const MatchedCall& matched : MatchCalls(sections)) waits.Add(matched);
  account.waits = waits.Result(trace, span_ns);
  return account;
}

}  // namespace dynamiccl
