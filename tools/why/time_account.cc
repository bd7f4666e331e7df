// SPDX-License-Identifier: Apache-2.0
#include "tools/why/time_account.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tools/advise/matched_times.h"
#include "tools/report/duration_quantiles.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// When fewer calls than this share are timed, no statement is made about the time in collectives.
constexpr double kLeastTimed = 0.9;
constexpr size_t kLeastMatched = 16;
constexpr double kMsOfNs = 1e-6;
constexpr double kUsOfNs = 1e-3;

// Calls with equal values of this key form a row of the account; KindTally has their times.
using KindKey = std::tuple<Collective, uint64_t, int>;
struct KindTally {
  DurationQuantiles durations;
  double total_ns = 0;
  int64_t longest_ns = 0;
  size_t calls = 0;
};

// The length of the union of intervals that come in about the order of their starts.
class CoveredTime {
 public:
  void Take(CallInterval one) {
    if (one.end <= one.start) return;
    auto next = open_.upper_bound(one.start);
    if (next != open_.begin() && std::prev(next)->second >= one.start) --next;
    while (next != open_.end() && next->first <= one.end) {
      one = {std::min(one.start, next->first), std::max(one.end, next->second)};
      next = open_.erase(next);
    }
    open_.emplace(one.start, one.end);
    if (open_.size() > kOpen) Close();
  }
  int64_t Length() const {
    int64_t length = closed_;
    for (const auto& [start, end] : open_) length += end - start;
    return length;
  }

 private:
  // The intervals to which later ones may be joined. A call is issued after those that came before it, so it
  // touches one of the last few.
  static constexpr size_t kOpen = 4096;

  void Close() {
    closed_ += open_.begin()->second - open_.begin()->first;
    open_.erase(open_.begin());
  }

  std::map<int64_t, int64_t> open_;  // disjoint intervals: start -> end
  int64_t closed_ = 0;
};

// Adds up the times of the first rank's calls while they pass.
class FirstRankTimes {
 public:
  explicit FirstRankTimes(const SectionScan& section) : section_(section) {}

  void Take(const StreamedCall& call) {
    const TraceRecord& record = call.record;
    const int64_t duration = DurationOf(record);
    const CallInterval ran = intervals_.Take(record.communicator, record.stream, record.issued_ns, duration);
    covered_.Take(ran);
    begin_ = std::min(begin_, ran.start);
    end_ = std::max(end_, ran.end);
    ++calls_;
    if (duration <= 0) return;
    ++timed_;
    if (!HasKind(record)) return;
    KindTally& kind = kinds_[KeyOf(record)];
    kind.durations.Add(duration);
    kind.total_ns += static_cast<double>(duration);
    kind.longest_ns = std::max(kind.longest_ns, duration);
    ++kind.calls;
  }

  // Begins the second pass, and returns whether there must be one.
  bool BeginAgain() {
    for (auto& [key, kind] : kinds_) kind.durations.BeginAgain();
    return std::ranges::any_of(kinds_,
                               [](const auto& each) { return each.second.durations.needs_second_pass(); });
  }
  void TakeAgain(const StreamedCall& call) {
    const int64_t duration = DurationOf(call.record);
    if (duration <= 0 || !HasKind(call.record)) return;
    DurationQuantiles& durations = kinds_.at(KeyOf(call.record)).durations;
    if (durations.needs_second_pass()) durations.AddAgain(duration);
  }

  std::vector<CallKind> Kinds() const {
    std::vector<CallKind> kinds;
    for (const auto& [key, kind] : kinds_) {
      const auto& [collective, bytes, n_ranks] = key;
      kinds.push_back({collective, bytes, n_ranks, kind.calls, kind.total_ns * kMsOfNs,
                       kind.durations.MedianNs() * kUsOfNs, static_cast<double>(kind.longest_ns) * kUsOfNs});
    }
    std::ranges::stable_sort(kinds, std::ranges::greater{}, &CallKind::total_ms);
    return kinds;
  }
  size_t calls() const { return calls_; }
  int64_t SpanNs() const { return calls_ == 0 ? 0 : end_ - begin_; }
  // Share of the span in which a call ran; nothing where too few calls were timed.
  std::optional<double> BusyShare() const {
    const auto calls = static_cast<double>(calls_);
    if (calls_ < 2 || static_cast<double>(timed_) < kLeastTimed * calls || SpanNs() <= 0) return std::nullopt;
    return static_cast<double>(covered_.Length()) / static_cast<double>(SpanNs());
  }

 private:
  static int64_t DurationOf(const TraceRecord& record) {
    return record.duration_source == 0 ? -1 : static_cast<int64_t>(record.duration_ns);
  }
  static bool HasKind(const TraceRecord& record) {
    const auto collective = static_cast<Collective>(record.collective);
    return !IsOneSided(collective) && collective != Collective::kSendRecv;
  }
  KindKey KeyOf(const TraceRecord& record) const {
    return {static_cast<Collective>(record.collective), record.bytes,
            section_.communicators.at(record.communicator).n_ranks};
  }

  const SectionScan& section_;
  CallIntervals intervals_;
  CoveredTime covered_;
  std::map<KindKey, KindTally> kinds_;
  size_t calls_ = 0, timed_ = 0;
  int64_t begin_ = INT64_MAX, end_ = INT64_MIN;
};

// Adds up the time that each rank waits inside its calls. In each call, the rank that comes last has the
// shortest time, because it waits for nobody. Every other rank waited for the difference between its own time
// and the shortest one.
class WaitSums {
 public:
  explicit WaitSums(const std::vector<SectionScan>& sections) : sections_(sections), last_(sections.size()) {}

  void Add(const MatchedTimes& matched) {
    if (matched.timed != sections_.size()) return;
    waited_ns_ += matched.sum_ns - static_cast<int64_t>(matched.timed) * matched.least_ns;
    ++last_[matched.last_section];
    ++calls_;
  }

  std::optional<RankWaits> Result(int64_t span_ns) const {
    if (calls_ < kLeastMatched || span_ns <= 0) return std::nullopt;
    const auto late = std::ranges::max_element(last_);
    RankWaits waits;
    waits.late_rank = sections_[static_cast<size_t>(late - last_.begin())].description.rank;
    waits.late_share = static_cast<double>(*late) / static_cast<double>(calls_);
    waits.waited_share = static_cast<double>(waited_ns_) / static_cast<double>(sections_.size()) /
                         static_cast<double>(span_ns);
    waits.calls = calls_;
    return waits;
  }

 private:
  const std::vector<SectionScan>& sections_;
  int64_t waited_ns_ = 0;  // of all ranks
  std::vector<size_t> last_;
  size_t calls_ = 0;
};

}  // namespace

double CallKind::BusBandwidth() const {
  return median_us <= 0
             ? 0
             : static_cast<double>(bytes) * BusBandwidthFactor(collective, n_ranks) / (median_us * 1e3);
}

Result<TimeAccount> TimesOf(const RecordSource& records, const std::vector<SectionScan>& sections) {
  TimeAccount account;
  if (sections.empty()) return account;
  FirstRankTimes first(sections.front());
  DYNAMICCL_CHECK_OK(PassCalls(
      records, sections, 1, [&](size_t, StreamedCall& call) { first.Take(call); }, Answers::kLeftOut));
  if (first.BeginAgain())
    DYNAMICCL_CHECK_OK(PassCalls(
        records, sections, 1, [&](size_t, StreamedCall& call) { first.TakeAgain(call); }, Answers::kLeftOut));
  account.kinds = first.Kinds();
  const bool order_only = std::ranges::any_of(
      sections, [](const SectionScan& section) { return section.description.order_only(); });
  if (order_only || first.calls() == 0) return account;
  account.span_ms = static_cast<double>(first.SpanNs()) * kMsOfNs;
  account.busy_share = first.BusyShare();
  if (sections.size() < 2) return account;
  WaitSums waits(sections);
  DYNAMICCL_TRY(const MatchedPasses passes, MatchedPasses::Begin(records, sections));
  DYNAMICCL_CHECK_OK(passes.Pass([&](const MatchedTimes& matched) { waits.Add(matched); }));
  account.waits = waits.Result(first.SpanNs());
  return account;
}

}  // namespace dynamiccl
