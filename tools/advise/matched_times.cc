// SPDX-License-Identifier: Apache-2.0
// Each pass over the records joins only the collectives whose key has one particular remainder. So only a
// bounded number of collectives is in memory.
#include "tools/advise/matched_times.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "tools/report/duration_quantiles.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// The most collectives of one pass. Each takes some 160 bytes.
constexpr uint64_t kMatchedAtOnce = 1 << 18;

// Communicator id, call number, index in group: equal on all ranks.
using MatchKey = std::tuple<uint64_t, uint64_t, uint16_t>;

uint64_t HashOf(const MatchKey& key) {
  const auto& [communicator, number, index] = key;
  const uint64_t mixed =
      (communicator ^ (number * 0x9e3779b97f4a7c15ULL) ^ (uint64_t{index} << 48)) * 0xff51afd7ed558ccdULL;
  return mixed ^ (mixed >> 32);
}
struct MatchHash {
  size_t operator()(const MatchKey& key) const { return HashOf(key); }
};

bool IsMatched(const TraceRecord& record) {
  return static_cast<Collective>(record.collective) < Collective::kSendRecv;
}

int64_t DurationOf(const TraceRecord& record) {
  return record.duration_source == 0 ? -1 : static_cast<int64_t>(record.duration_ns);
}

// Adds the call of one more rank.
void Join(const TraceRecord& record, size_t section, const CallInterval& ran, MatchedTimes& matched) {
  if (matched.ranks++ == 0) {
    matched.section = static_cast<uint32_t>(section);
    matched.communicator = record.communicator;
    matched.collective = static_cast<Collective>(record.collective);
    matched.bytes = record.bytes;
  }
  const int64_t duration = DurationOf(record);
  if (duration <= 0) return;
  const bool first = matched.timed++ == 0;
  if (first || duration < matched.least_ns) matched.last_section = static_cast<uint32_t>(section);
  matched.least_ns = first ? duration : std::min(matched.least_ns, duration);
  matched.most_ns = std::max(matched.most_ns, duration);
  matched.sum_ns += duration;
  matched.start_ns = first ? ran.start : std::max(matched.start_ns, ran.start);
  matched.end_ns = first ? ran.end : std::max(matched.end_ns, ran.end);
}

// When calls ran, for sections that are read one after the other.
class SectionIntervals {
 public:
  CallInterval Take(size_t section, const TraceRecord& record) {
    if (section != section_) intervals_ = {};
    section_ = section;
    return intervals_.Take(record.communicator, record.stream, record.issued_ns, DurationOf(record));
  }

 private:
  size_t section_ = 0;
  CallIntervals intervals_;
};

// The collectives of one pass. Ranks issue them in about the same order, so the collective after the last one
// found is tried first. Searching the map takes ten times as long.
class JoinedCalls {
 public:
  explicit JoinedCalls(size_t expected) { joined_.reserve(expected); }

  void Take(const MatchKey& key, size_t section, const TraceRecord& record, const CallInterval& ran) {
    if (section != section_) next_ = 0;
    section_ = section;
    if (next_ >= joined_.size() || joined_[next_].key != key) next_ = PlaceOf(key);
    Joined& same = joined_[next_++];
    if (same.last == section) return;
    same.last = section;
    Join(record, section, ran, same.times);
  }
  void PassOn(const std::function<void(const MatchedTimes&)>& consumer) const {
    for (const Joined& one : joined_) consumer(one.times);
  }

 private:
  struct Joined {
    MatchKey key;
    MatchedTimes times;
    size_t last = SIZE_MAX;  // the last section that recorded the collective
  };

  size_t PlaceOf(const MatchKey& key) {
    const auto [found, is_new] = places_.try_emplace(key, joined_.size());
    if (is_new) joined_.push_back({.key = key, .times = {}});
    return found->second;
  }

  std::vector<Joined> joined_;
  std::unordered_map<MatchKey, size_t, MatchHash> places_;
  size_t section_ = 0;
  size_t next_ = 0;
};

// The combination for which a TimedCell states a time; nothing for a call that belongs to none.
using CellKey = std::tuple<Collective, int, int, uint64_t>;
std::optional<CellKey> CellOf(const MatchedTimes& matched, const std::vector<SectionScan>& sections) {
  const CommunicatorInfo& info = sections[matched.section].communicators.at(matched.communicator);
  if (matched.TimeNs() <= 0 || info.n_ranks < 2 || matched.bytes == 0 ||
      static_cast<int>(matched.collective) >= kTunableCollectives)
    return std::nullopt;
  return CellKey{matched.collective, info.n_ranks, std::max(1, info.n_nodes), matched.bytes};
}

}  // namespace

int64_t MatchedTimes::TimeNs() const {
  return timed == 0 ? -1 : std::clamp(end_ns - start_ns, least_ns, most_ns);
}

Result<MatchedPasses> MatchedPasses::Begin(const RecordSource& records,
                                           const std::vector<SectionScan>& sections) {
  MatchedPasses passes(records, sections);
  // The largest number of calls of one rank on each communicator, and the number of calls by section and
  // communicator.
  std::map<uint64_t, uint64_t> most;
  std::map<std::pair<size_t, uint32_t>, uint64_t> counts;
  const auto count = [&](size_t section, StreamedCall& call) {
    if (!IsMatched(call.record)) return;
    ++counts[{section, call.record.communicator}];
    passes.any_timed_ = passes.any_timed_ || DurationOf(call.record) > 0;
  };
  DYNAMICCL_CHECK_OK(PassCalls(records, sections, sections.size(), count, Answers::kLeftOut));
  for (const auto& [place, calls] : counts) {
    uint64_t& most_calls = most[sections[place.first].communicators.at(place.second).id];
    most_calls = std::max(most_calls, calls);
  }
  for (const auto& [id, calls] : most) passes.collectives_ += calls;
  return passes;
}

Status MatchedPasses::PassAlone(const std::function<void(const MatchedTimes&)>& consumer) const {
  SectionIntervals intervals;
  const auto take = [&](size_t section, StreamedCall& call) {
    const CallInterval ran = intervals.Take(section, call.record);
    if (!IsMatched(call.record)) return;
    MatchedTimes alone;
    Join(call.record, section, ran, alone);
    consumer(alone);
  };
  return PassCalls(records_, sections_, 1, take, Answers::kLeftOut);
}

Status MatchedPasses::Pass(const std::function<void(const MatchedTimes&)>& consumer) const {
  if (sections_.size() == 1) return PassAlone(consumer);
  const uint64_t parts = collectives_ / kMatchedAtOnce + 1;
  for (uint64_t part = 0; part < parts; ++part) {
    JoinedCalls joined(collectives_ / parts + 1);
    SectionIntervals intervals;
    const auto take = [&](size_t section, StreamedCall& call) {
      const TraceRecord& record = call.record;
      const CallInterval ran = intervals.Take(section, record);
      const uint64_t id = sections_[section].communicators.at(record.communicator).id;
      const MatchKey key{id, record.call_number, record.index_in_group};
      if (!IsMatched(record) || HashOf(key) % parts != part) return;
      joined.Take(key, section, record, ran);
    };
    DYNAMICCL_CHECK_OK(PassCalls(records_, sections_, sections_.size(), take, Answers::kLeftOut));
    joined.PassOn(consumer);
  }
  return {};
}

Result<std::vector<TimedCell>> TimesOfCells(const RecordSource& records,
                                            const std::vector<SectionScan>& sections) {
  DYNAMICCL_TRY(const MatchedPasses passes, MatchedPasses::Begin(records, sections));
  if (!passes.any_timed()) return std::vector<TimedCell>();
  std::map<CellKey, DurationQuantiles> cells;
  DYNAMICCL_CHECK_OK(passes.Pass([&](const MatchedTimes& matched) {
    if (const auto key = CellOf(matched, sections)) cells[*key].Add(matched.TimeNs());
  }));
  bool again = false;
  for (auto& [key, times] : cells) {
    again = again || times.needs_second_pass();
    times.BeginAgain();
  }
  if (again)
    DYNAMICCL_CHECK_OK(passes.Pass([&](const MatchedTimes& matched) {
      const auto key = CellOf(matched, sections);
      if (key && cells.at(*key).needs_second_pass()) cells.at(*key).AddAgain(matched.TimeNs());
    }));
  std::vector<TimedCell> times;
  for (const auto& [key, of] : cells) {
    const auto& [collective, ranks, nodes, bytes] = key;
    times.push_back({.collective = collective,
                     .n_ranks = ranks,
                     .n_nodes = nodes,
                     .bytes = bytes,
                     .us = of.MedianNs() * 1e-3});
  }
  return times;
}

}  // namespace dynamiccl
