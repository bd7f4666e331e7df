// SPDX-License-Identifier: Apache-2.0
// Divides a trace into training steps, picks the most frequent kind of step, and times its collectives.
#include "tools/advise/recorded_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "src/base/statistics.h"
#include "tools/advise/matched_times.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// Number of steps at the start of a run whose times do not count, because they touch memory for the first
// time.
constexpr size_t kWarmUpSteps = 2;
// The most times of issue in memory at once, at 8 bytes each. A trace with more is read several times.
constexpr size_t kTimesAtOnce = 2 << 20;

auto NoCollectives(const std::map<Collective, size_t>& between_two) {
  if (between_two.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "the trace has no collectives"),
                    "`dynamiccl trace show` says what is in it");
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "the trace has only calls that consist of sends and receives: {}", CallsText(between_two)),
      "no setting is known here that changes such calls; `dynamiccl why` says what the files show of them");
}

// Returns the place of the first step of the most frequent kind. If several kinds are equally frequent, the
// one that occurs first is used.
size_t Commonest(const std::vector<SeenStep>& steps) {
  struct Kind {
    size_t first = 0;
    size_t steps = 0;
  };
  std::map<std::pair<uint64_t, uint64_t>, Kind> kinds;
  for (size_t i = 0; i < steps.size(); ++i) {
    Kind& kind = kinds[{steps[i].hash, steps[i].calls}];
    if (kind.steps++ == 0) kind.first = i;
  }
  const auto fewer = [](const auto& a, const auto& b) {
    return a.second.steps != b.second.steps ? a.second.steps < b.second.steps
                                            : a.second.first > b.second.first;
  };
  return std::ranges::max_element(kinds, fewer)->second.first;
}

// Passes on those collectives of the first section that are in a step, each with its step's number.
Status PassSteps(const RecordSource& records, const std::vector<SectionScan>& sections,
                 const StepDivision& division,
                 const std::function<void(int64_t number, const StreamedCall& call)>& consumer) {
  uint64_t place = 0;
  const auto take = [&](size_t, StreamedCall& call) {
    if (BetweenTwo(call.record)) return;
    if (const auto number = division.NumberOf(place++, call.step)) consumer(*number, call);
  };
  return PassCalls(records, sections, 1, take, Answers::kLeftOut);
}

// Collects the operations of the most frequent step, and the times of issue in all steps that equal it.
class StepReader {
 public:
  StepReader(const RecordSource& records, const std::vector<SectionScan>& sections,
             const StepDivision& division, SeenSteps seen)
      : records_(records),
        sections_(sections),
        division_(division),
        seen_(std::move(seen)),
        like_(Commonest(seen_.steps())),
        first_timed_(seen_.steps().size() > 2 * kWarmUpSteps ? kWarmUpSteps : 0) {}

  const std::vector<SeenStep>& steps() const { return seen_.steps(); }
  const SeenStep& like() const { return steps()[like_]; }
  bool IsLike(const SeenStep& step) const { return step.hash == like().hash && step.calls == like().calls; }
  size_t first_timed() const { return first_timed_; }
  size_t Count(size_t from) const {
    return static_cast<size_t>(std::count_if(steps().begin() + static_cast<std::ptrdiff_t>(from),
                                             steps().end(), [&](const SeenStep& s) { return IsLike(s); }));
  }

  Status Read(bool recognised) {
    const auto calls = static_cast<size_t>(like().calls);
    if (recognised) labels.resize(calls);
    const size_t at_once = std::max<size_t>(1, kTimesAtOnce / std::max<size_t>(1, Count(first_timed_)));
    for (size_t from = 0; from < calls; from += at_once)
      DYNAMICCL_CHECK_OK(ReadTimes(from, std::min(calls, from + at_once)));
    return {};
  }

  using Labels = std::map<std::pair<Role, Phase>, size_t>;
  // The calls of the first such step.
  std::vector<TraceCall> calls;
  // For each call of the step: its median time of issue after the step's first call, and how often it has
  // each pair of labels.
  std::vector<int64_t> issued_ns;
  std::vector<Labels> labels;
  std::map<ZeroStage, size_t> stages;

 private:
  // Reads the times of the calls `from` to `to` of each step. If `from` is 0, also reads everything that is
  // read only once.
  Status ReadTimes(size_t from, size_t to) {
    std::vector<uint32_t> taken(steps().size());  // calls of each step
    std::vector<std::vector<int64_t>> issued(to - from);
    const auto take = [&](int64_t number, const StreamedCall& call) {
      const size_t place = seen_.PlaceOf(number);
      const SeenStep& step = steps()[place];
      if (!IsLike(step)) return;
      const size_t k = taken[place]++;
      if (from == 0) TakeOnce(place == like_, k, call);
      if (place >= first_timed_ && k >= from && k < to)
        issued[k - from].push_back(call.record.issued_ns - step.begin_ns);
    };
    DYNAMICCL_CHECK_OK(PassSteps(records_, sections_, division_, take));
    for (const auto& times : issued) issued_ns.push_back(std::llround(Median(times)));
    return {};
  }

  void TakeOnce(bool is_first, size_t k, const StreamedCall& call) {
    const TraceRecord& record = call.record;
    if (is_first)
      calls.push_back(DecodedCall(record, sections_[0].communicators.at(record.communicator), call.step));
    if (labels.empty()) return;
    ++labels[k][{LabelledRole(record), LabelledPhase(record)}];
    ++stages[LabelledStage(record)];
  }

  const RecordSource& records_;
  const std::vector<SectionScan>& sections_;
  const StepDivision& division_;
  SeenSteps seen_;
  size_t like_;
  size_t first_timed_;
};

// Fills a RecordedStep from the steps of the trace's first section, the recording of one rank. StepOf owns
// the writer on its stack.
class Writer {
 public:
  explicit Writer(const std::vector<SectionScan>& sections) : section_(sections.front()) {
    for (const auto& [number, info] : section_.communicators) ranks_ = std::max(ranks_, info.n_ranks);
    ranks_ = std::max({ranks_, section_.description.world, static_cast<int>(sections.size())});
  }

  RecordedStep Write(const StepReader& steps, const std::string& recognised_by);

 private:
  // Gives each operation of the step the labels that are most frequent for it among all equal steps. The
  // recogniser named `by` set the labels; it may be wrong about single calls.
  void Recognise(const StepReader& steps, const std::string& by);
  void Operations(const std::vector<TraceCall>& step);
  void Times(const StepReader& steps);
  int RanksOf(uint32_t communicator) const { return section_.communicators.at(communicator).n_ranks; }
  // The axis of a call's communicator: data for all ranks, shard or replicate for fewer. Call this after
  // shards_ has been filled.
  Axis AxisOf(const TraceCall& call) const {
    const int ranks = RanksOf(call.communicator);
    if (ranks >= ranks_) return Axis::kData;
    return shards_.contains(call.communicator) ? Axis::kShard : Axis::kReplicate;
  }

  const SectionScan& section_;
  int ranks_ = 0;
  // Communicators of fewer than all ranks that issue gathers or scatters.
  std::set<uint32_t> shards_;
  RecordedStep result_;
};

void Writer::Operations(const std::vector<TraceCall>& step) {
  for (const TraceCall& call : step) {
    const Collective collective = call.issued.call.collective;
    const bool shares = collective == Collective::kAllGather || collective == Collective::kReduceScatter;
    if (!shares || RanksOf(call.communicator) >= ranks_) continue;
    shards_.insert(call.communicator);
    result_.shard_ranks = RanksOf(call.communicator);
  }
  for (const TraceCall& call : step) {
    const CollectiveCall& c = call.issued.call;
    const auto width = static_cast<int64_t>(std::max<size_t>(1, ElementBytes(c.data_type)));
    result_.operations.push_back({c.collective, c.data_type, c.op, AxisOf(call),
                                  static_cast<int64_t>(c.bytes) / width, call.issued.root_or_peer,
                                  call.issued.labelled_role, call.issued.labelled_phase, c.index_in_group,
                                  c.group_size});
    result_.labelled = result_.labelled || call.issued.labelled_role != Role::kUnknown;
    if (call.issued.labelled_stage != ZeroStage::kUnknown) result_.stage = call.issued.labelled_stage;
  }
}

void Writer::Times(const StepReader& steps) {
  result_.issued_ns = steps.issued_ns;
  std::vector<int64_t> lengths;
  for (size_t i = steps.first_timed(); i + 1 < steps.steps().size(); ++i)
    if (steps.IsLike(steps.steps()[i]))
      lengths.push_back(steps.steps()[i + 1].begin_ns - steps.steps()[i].begin_ns);
  if (lengths.empty() || section_.description.order_only()) return;
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

void Writer::Recognise(const StepReader& steps, const std::string& by) {
  for (size_t k = 0; k < result_.operations.size(); ++k)
    std::tie(result_.operations[k].role, result_.operations[k].phase) = MostFrequent(steps.labels[k]);
  result_.stage = MostFrequent(steps.stages);
  result_.labelled = false;
  result_.recognised_by = by;
}

RecordedStep Writer::Write(const StepReader& steps, const std::string& recognised_by) {
  result_.ranks = std::max(2, ranks_);
  int nodes = 1;
  for (const auto& [number, info] : section_.communicators)
    if (info.n_ranks == ranks_) nodes = std::max(nodes, info.n_nodes);
  result_.ranks_per_node = (result_.ranks + nodes - 1) / nodes;
  Operations(steps.calls);
  if (!recognised_by.empty()) Recognise(steps, recognised_by);
  Times(steps);
  result_.steps = steps.Count(0);
  return std::move(result_);
}

// Returns the steps into which `division` divides the calls. If the program marked no steps, this reads the
// calls once more.
Result<SeenSteps> StepsOf(const RecordSource& records, const std::vector<SectionScan>& sections,
                          const StepSearch& search, const StepDivision& division) {
  if (division.marked) return search.marked();
  SeenSteps seen;
  DYNAMICCL_CHECK_OK(PassSteps(records, sections, division, [&](int64_t number, const StreamedCall& call) {
    seen.Take(number, call.record);
  }));
  return seen;
}

}  // namespace

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
  const MemoryRecords records(trace);
  DYNAMICCL_TRY(const std::vector<SectionScan> sections, ScanSections(records, SIZE_MAX));
  StepSearch search;
  const auto take = [&](size_t, StreamedCall& call) { search.Take(call.record, call.step); };
  DYNAMICCL_CHECK_OK(PassCalls(records, sections, 1, take, Answers::kLeftOut));
  return StepOf(records, sections, search, recognised_by);
}

Result<RecordedStep> StepOf(const RecordSource& records, const std::vector<SectionScan>& sections,
                            const StepSearch& search, const std::string& recognised_by) {
  if (search.collectives() == 0) return NoCollectives(search.between_two());
  const StepDivision division = search.Divide(!sections.front().description.order_only());
  DYNAMICCL_TRY(SeenSteps seen, StepsOf(records, sections, search, division));
  StepReader steps(records, sections, division, std::move(seen));
  if (steps.like().calls > kLongestStep)
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "no step of at most {} calls repeats in the trace's {} collectives",
                              kLongestStep, search.collectives()),
                    "let the program mark its steps (src/annotate), or record fewer of them");
  DYNAMICCL_CHECK_OK(steps.Read(!recognised_by.empty()));
  RecordedStep result = Writer(sections).Write(steps, recognised_by);
  result.marked = division.marked;
  result.paced = division.paced;
  result.between_two = search.between_two();
  result.between_two_share = search.between_two_share();
  if (sections.front().description.lost == 0) result.int32_reduces = search.int32_reduces();
  DYNAMICCL_TRY(result.times, TimesOfCells(records, sections));
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
