// SPDX-License-Identifier: Apache-2.0
// Divides a trace into training steps, picks the most frequent kind of step, and times its collectives.
#include "tools/advise/recorded_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "src/base/statistics.h"
#include "traces/format/matched_calls.h"

namespace dynamiccl {
namespace {

// Number of steps at the start of a run whose times do not count, because they touch memory for the first
// time.
constexpr size_t kWarmUpSteps = 2;
// Fewest calls in a sequence whose repetition is taken for a training step.
constexpr size_t kLeastPeriod = 2;
constexpr double kNsOfUs = 1e3;

using Calls = std::vector<const TraceCall*>;

// True if the call consists of sends and receives. A RecordedStep leaves such calls out of its operations.
bool BetweenTwo(const TraceCall& call) {
  return static_cast<int>(call.issued.call.collective) >= kTunableCollectives;
}

// Two calls of different steps count as the same call when these fields are equal: communicator, operation
// and arguments.
auto KeyOf(const TraceCall& call) {
  const CollectiveCall& c = call.issued.call;
  return std::tuple(call.communicator, c.collective, c.data_type, c.bytes, call.issued.root_or_peer);
}

std::map<Collective, size_t> CountBetweenTwo(const SectionCalls& section) {
  std::map<Collective, size_t> counts;
  for (const TraceCall& call : section.calls)
    if (BetweenTwo(call)) ++counts[call.issued.call.collective];
  return counts;
}

// The share of the section's bytes that calls of sends and receives have.
double ShareBetweenTwo(const SectionCalls& section) {
  double all = 0, between = 0;
  for (const TraceCall& call : section.calls) {
    all += static_cast<double>(call.issued.call.bytes);
    if (BetweenTwo(call)) between += static_cast<double>(call.issued.call.bytes);
  }
  return all > 0 ? between / all : 0;
}

auto NoCollectives(const std::map<Collective, size_t>& between_two) {
  if (between_two.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "the trace has no collectives"),
                    "`dynamiccl trace show` says what is in it");
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "the trace has only calls that consist of sends and receives: {}", CallsText(between_two)),
      "no setting is known here that changes such calls; `dynamiccl why` says what the files show of them");
}

bool SameOperations(const Calls& a, const Calls& b) {
  return std::ranges::equal(a, b,
                            [](const TraceCall* x, const TraceCall* y) { return KeyOf(*x) == KeyOf(*y); });
}

// The steps of a trace in which the program marked where each step begins.
std::vector<Calls> ByMarks(const Calls& calls) {
  std::map<int64_t, Calls> steps;
  for (const TraceCall* const call : calls)
    if (call->step >= 0) steps[call->step].push_back(call);
  std::vector<Calls> list;
  for (auto& [step, its] : steps) list.push_back(std::move(its));
  return list;
}

// Returns the smallest number n of calls such that the last n calls equal the n calls before them; 0: there
// is none. It takes linear time by the Z algorithm (Gusfield, "Algorithms on Strings, Trees, and Sequences",
// 1997). equal[i] is how many calls agree when the trace, read backwards, is compared with itself shifted by
// i.
size_t PeriodOf(const Calls& calls) {
  const size_t n = calls.size();
  const auto same = [&](size_t i, size_t j) { return KeyOf(*calls[n - 1 - i]) == KeyOf(*calls[n - 1 - j]); };
  std::vector<size_t> equal(n, 0);
  for (size_t i = 1, left = 0, right = 0; i < n; ++i) {
    if (i < right) equal[i] = std::min(right - i, equal[i - left]);
    while (i + equal[i] < n && same(equal[i], i + equal[i])) ++equal[i];
    if (i + equal[i] > right) left = i, right = i + equal[i];
    if (i >= kLeastPeriod && equal[i] >= i) return i;
  }
  return 0;
}

// True if all calls of one period are equal. Such a period does not tell where a step ends.
bool AllEqual(const Calls& calls, size_t period) {
  return std::all_of(calls.end() - static_cast<std::ptrdiff_t>(period), calls.end(),
                     [&](const TraceCall* call) { return KeyOf(*call) == KeyOf(*calls.back()); });
}

std::map<int64_t, size_t> Int32Reduces(const Calls& calls) {
  std::map<int64_t, size_t> counts;
  for (const TraceCall* const call : calls) {
    const CollectiveCall& c = call->issued.call;
    if (c.collective == Collective::kAllReduce && c.data_type == DataType::kInt32)
      ++counts[static_cast<int64_t>(c.bytes / sizeof(int32_t))];
  }
  return counts;
}

// Steps found by repetition, counted from the end of the trace. When nothing repeats, the whole trace is one
// step.
std::vector<Calls> ByPeriod(const Calls& calls) {
  const size_t period = PeriodOf(calls);
  if (period == 0 || AllEqual(calls, period)) return {calls};
  std::vector<Calls> steps;
  for (size_t end = calls.size(); end >= period; end -= period)
    steps.emplace_back(calls.begin() + static_cast<std::ptrdiff_t>(end - period),
                       calls.begin() + static_cast<std::ptrdiff_t>(end));
  std::ranges::reverse(steps);
  return steps;
}

// Takes each of the last calls of the trace for a step of one call. This needs at least kLeastPaced equal
// calls with nearly equal pauses between them, which fill nearly all of the time. Equal buckets of one step
// look different: they come close together, with a long pause after them. Returns nothing if the calls look
// different.
std::vector<Calls> ByPace(const Calls& calls) {
  constexpr size_t kLeastPaced = 8;
  constexpr double kMostlyEven = 0.8;
  size_t equal = 1;
  while (equal < calls.size() && KeyOf(*calls[calls.size() - 1 - equal]) == KeyOf(*calls.back())) ++equal;
  if (equal < kLeastPaced) return {};
  std::vector<Calls> steps;
  std::vector<double> pauses;
  for (size_t i = calls.size() - equal; i < calls.size(); ++i) {
    if (!steps.empty())
      pauses.push_back(static_cast<double>(calls[i]->issued.issued_ns - calls[i - 1]->issued.issued_ns));
    steps.push_back({calls[i]});
  }
  const double median = Median(pauses);
  double all = 0, even = 0, count = 0;
  for (const double pause : pauses) {
    const bool is_even = 2 * pause >= median && pause <= 2 * median;
    all += pause;
    even += is_even ? pause : 0;
    count += is_even ? 1 : 0;
  }
  const bool paced = even > kMostlyEven * all && count > kMostlyEven * static_cast<double>(pauses.size());
  return paced ? steps : std::vector<Calls>();
}

// Returns the step whose sequence of operations is the most frequent; among equally frequent ones the first.
const Calls& Commonest(const std::vector<Calls>& steps) {
  const auto key_of = [](const TraceCall* call) { return KeyOf(*call); };
  const auto less = [&](const Calls* a, const Calls* b) {
    return std::ranges::lexicographical_compare(*a, *b, {}, key_of, key_of);
  };
  std::map<const Calls*, size_t, decltype(less)> counts(less);  // by the first step of each kind
  for (const Calls& step : steps) ++counts[&step];
  const auto fewer = [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : a.first > b.first;
  };
  return *std::ranges::max_element(counts, fewer)->first;
}

// Fills a RecordedStep from the steps of the trace's first section, the recording of one rank. StepOf owns
// the writer on its stack.
class Writer {
 public:
  Writer(const Trace& trace, const SectionCalls& section)
      : section_(section), timed_(!trace.sections.front().order_only()) {
    for (const auto& [number, info] : section.communicators) ranks_ = std::max(ranks_, info.n_ranks);
    ranks_ = std::max({ranks_, trace.sections.front().world, static_cast<int>(trace.sections.size())});
  }

  RecordedStep Write(const std::vector<Calls>& steps, const std::string& recognised_by);

 private:
  // Gives each operation of the step the labels that are most frequent for it among all equal steps. The
  // recogniser named `by` set the labels; it may be wrong about single calls.
  void Recognise(const std::vector<Calls>& steps, const std::string& by);
  void Operations(const Calls& step);
  void Times(const std::vector<Calls>& steps, const Calls& like);
  int RanksOf(uint32_t communicator) const { return section_.communicators.at(communicator).n_ranks; }
  // The axis of a call's communicator: data for all ranks, shard or replicate for fewer. Call this after
  // shards_ has been filled.
  Axis AxisOf(const TraceCall& call) const {
    const int ranks = RanksOf(call.communicator);
    if (ranks >= ranks_) return Axis::kData;
    return shards_.contains(call.communicator) ? Axis::kShard : Axis::kReplicate;
  }

  const SectionCalls& section_;
  const bool timed_;  // whether the trace has times of issue, and not only an order
  int ranks_ = 0;
  // Communicators of fewer than all ranks that issue gathers or scatters.
  std::set<uint32_t> shards_;
  RecordedStep result_;
};

void Writer::Operations(const Calls& step) {
  for (const TraceCall* const call : step) {
    const Collective collective = call->issued.call.collective;
    const bool shares = collective == Collective::kAllGather || collective == Collective::kReduceScatter;
    if (!shares || RanksOf(call->communicator) >= ranks_) continue;
    shards_.insert(call->communicator);
    result_.shard_ranks = RanksOf(call->communicator);
  }
  for (const TraceCall* const call : step) {
    const CollectiveCall& c = call->issued.call;
    const auto width = static_cast<int64_t>(std::max<size_t>(1, ElementBytes(c.data_type)));
    result_.operations.push_back({c.collective, c.data_type, c.op, AxisOf(*call),
                                  static_cast<int64_t>(c.bytes) / width, call->issued.root_or_peer,
                                  call->issued.labelled_role, call->issued.labelled_phase, c.index_in_group,
                                  c.group_size});
    result_.labelled = result_.labelled || call->issued.labelled_role != Role::kUnknown;
    if (call->issued.labelled_stage != ZeroStage::kUnknown) result_.stage = call->issued.labelled_stage;
  }
}

void Writer::Times(const std::vector<Calls>& steps, const Calls& like) {
  std::vector<int64_t> lengths;
  std::vector<std::vector<int64_t>> issued(like.size());
  const size_t first = steps.size() > 2 * kWarmUpSteps ? kWarmUpSteps : 0;
  for (size_t i = first; i < steps.size(); ++i) {
    if (!SameOperations(steps[i], like)) continue;
    const int64_t begin = steps[i].front()->issued.issued_ns;
    for (size_t k = 0; k < like.size(); ++k) issued[k].push_back(steps[i][k]->issued.issued_ns - begin);
    if (i + 1 < steps.size()) lengths.push_back(steps[i + 1].front()->issued.issued_ns - begin);
  }
  for (auto& times : issued) result_.issued_ns.push_back(std::llround(Median(times)));
  if (lengths.empty() || !timed_) return;
  result_.step_ns = std::llround(Median(lengths));
  result_.timed_steps = lengths.size();
  if (result_.step_ns > 0)
    result_.spread = (Quantile(lengths, 0.9) - Quantile(lengths, 0.1)) / static_cast<double>(result_.step_ns);
}

// Returns the key with the largest count.
template <typename Key>
Key MostFrequent(const std::map<Key, size_t>& counts) {
  return std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
}

void Writer::Recognise(const std::vector<Calls>& steps, const std::string& by) {
  const Calls& like = Commonest(steps);
  std::vector<std::map<std::pair<Role, Phase>, size_t>> labels(like.size());
  std::map<ZeroStage, size_t> stages;
  for (const Calls& step : steps) {
    if (!SameOperations(step, like)) continue;
    for (size_t k = 0; k < step.size(); ++k) {
      ++labels[k][{step[k]->issued.labelled_role, step[k]->issued.labelled_phase}];
      ++stages[step[k]->issued.labelled_stage];
    }
  }
  for (size_t k = 0; k < like.size(); ++k)
    std::tie(result_.operations[k].role, result_.operations[k].phase) = MostFrequent(labels[k]);
  result_.stage = MostFrequent(stages);
  result_.labelled = false;
  result_.recognised_by = by;
}

RecordedStep Writer::Write(const std::vector<Calls>& steps, const std::string& recognised_by) {
  const Calls& like = Commonest(steps);
  result_.ranks = std::max(2, ranks_);
  int nodes = 1;
  for (const auto& [number, info] : section_.communicators)
    if (info.n_ranks == ranks_) nodes = std::max(nodes, info.n_nodes);
  result_.ranks_per_node = (result_.ranks + nodes - 1) / nodes;
  Operations(like);
  if (!recognised_by.empty()) Recognise(steps, recognised_by);
  Times(steps, like);
  result_.steps = static_cast<size_t>(
      std::ranges::count_if(steps, [&](const Calls& step) { return SameOperations(step, like); }));
  return std::move(result_);
}

// Time of one call on all ranks, from the last rank's start to the last rank's end; -1: not timed. A rank
// that comes early waits inside its collective, so its own duration is too long. A rank that comes late finds
// the others' data and may end before them, so its own duration is too short. Clocks that disagree cannot
// move the result beyond the ranks' own durations.
int64_t TimeOf(const MatchedCall& matched, const std::vector<SectionCalls>& sections,
               const std::vector<std::vector<CallInterval>>& intervals) {
  int64_t least = INT64_MAX, most = -1, start = INT64_MIN, end = INT64_MIN;
  for (const auto& [section, call] : matched.ranks) {
    const int64_t duration = sections[section].calls[call].issued.duration_ns;
    if (duration <= 0) continue;
    least = std::min(least, duration);
    most = std::max(most, duration);
    start = std::max(start, intervals[section][call].start);
    end = std::max(end, intervals[section][call].end);
  }
  return most < 0 ? -1 : std::clamp(end - start, least, most);
}

bool AnyIsTimed(const std::vector<SectionCalls>& sections) {
  return std::ranges::any_of(sections, [](const SectionCalls& section) {
    return std::ranges::any_of(section.calls,
                               [](const TraceCall& call) { return call.issued.duration_ns > 0; });
  });
}

}  // namespace

std::vector<TimedCell> TimesOf(const std::vector<SectionCalls>& sections) {
  if (!AnyIsTimed(sections)) return {};  // matching the calls of a large trace takes longer than reading it
  using Key = std::tuple<Collective, int, int, uint64_t>;
  std::vector<std::vector<CallInterval>> intervals;
  for (const SectionCalls& section : sections) intervals.push_back(IntervalsOf(section));
  std::map<Key, std::vector<int64_t>> cells;
  for (const MatchedCall& matched : MatchCalls(sections)) {
    const int64_t time = TimeOf(matched, sections, intervals);
    const auto& [section, call] = matched.ranks.front();
    const TraceCall& first = sections[section].calls[call];
    const CollectiveCall& c = first.issued.call;
    const CommunicatorInfo& info = sections[section].communicators.at(first.communicator);
    if (time <= 0 || info.n_ranks < 2 || c.bytes == 0 ||
        static_cast<int>(c.collective) >= kTunableCollectives)
      continue;
    cells[{c.collective, info.n_ranks, std::max(1, info.n_nodes), c.bytes}].push_back(time);
  }
  std::vector<TimedCell> times;
  for (const auto& [key, all] : cells) {
    const auto& [collective, ranks, nodes, bytes] = key;
    times.push_back({.collective = collective,
                     .n_ranks = ranks,
                     .n_nodes = nodes,
                     .bytes = bytes,
                     .us = Median(all) / kNsOfUs});
  }
  return times;
}

size_t CallsIn(const std::map<Collective, size_t>& counts) {
  size_t calls = 0;
  for (const auto& [collective, count] : counts) calls += count;
  return calls;
}

std::string CallsText(const std::map<Collective, size_t>& counts) {
  std::vector<std::string> texts;
  for (const auto& [collective, calls] : counts)
    texts.push_back(fmt::format("{} {}", calls, Name(collective)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Result<RecordedStep> StepOf(const Trace& trace, const std::string& recognised_by) {
  return StepOf(trace, CallsOf(trace), recognised_by);
}

Result<RecordedStep> StepOf(const Trace& trace, const std::vector<SectionCalls>& sections,
                            const std::string& recognised_by) {
  Calls calls;
  if (!sections.empty())
    for (const TraceCall& call : sections.front().calls)
      if (!BetweenTwo(call)) calls.push_back(&call);
  if (calls.empty())
    return NoCollectives(sections.empty() ? std::map<Collective, size_t>()
                                          : CountBetweenTwo(sections.front()));
  std::vector<Calls> steps = ByMarks(calls);
  const bool marked = steps.size() > 1;
  if (!marked) steps = ByPeriod(calls);
  std::vector<Calls> paced;
  if (!marked && steps.size() == 1 && !trace.sections.front().order_only()) paced = ByPace(calls);
  if (!paced.empty()) steps = paced;
  RecordedStep result = Writer(trace, sections.front()).Write(steps, recognised_by);
  result.marked = marked;
  result.paced = !paced.empty();
  result.between_two = CountBetweenTwo(sections.front());
  result.between_two_share = ShareBetweenTwo(sections.front());
  if (trace.sections.front().lost == 0) result.int32_reduces = Int32Reduces(calls);
  result.times = TimesOf(sections);
  return result;
}

void SpreadOver(int ranks_per_node, RecordedStep& step) {
  step.ranks_per_node = ranks_per_node;
  const auto nodes_of = [&](int ranks) { return (ranks + ranks_per_node - 1) / ranks_per_node; };
  for (TimedCell& cell : step.times) {
    const bool neighbours = cell.n_ranks == step.ranks || cell.n_ranks == step.shard_ranks;
    cell.n_nodes = neighbours ? nodes_of(cell.n_ranks) : std::min(nodes_of(step.ranks), cell.n_ranks);
  }
}

}  // namespace dynamiccl
