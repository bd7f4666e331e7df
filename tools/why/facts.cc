// SPDX-License-Identifier: Apache-2.0
// Reads the records of a job in passes, and computes what several parts of the answer state.
#include <algorithm>
#include <optional>

#include "tools/advise/step_search.h"
#include "tools/report/recognised_labels.h"
#include "tools/why/parts.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// If the program marks no steps, a repeated sequence of calls counts as a step when it occurs at least
// kLeastSteps times and makes up at least this share of all calls. Benchmarks repeat calls too, but with many
// sizes.
constexpr size_t kLeastSteps = 3;
constexpr double kLeastShareOfCalls = 0.5;
// A stage that the policy recognised is named when at least this share of the calls has it.
constexpr double kSureStage = 0.75;

// True if the repeated sequence is a training step, and not merely a loop of equal calls. `collectives` is
// the number of calls that could be in it.
bool IsStep(const RecordedStep& step, uint64_t collectives) {
  if (step.paced) return false;
  if (step.labelled || (step.marked && step.steps >= kLeastSteps)) return true;
  const auto repeated = static_cast<double>(step.steps * step.operations.size());
  return step.steps >= kLeastSteps && repeated >= kLeastShareOfCalls * static_cast<double>(collectives);
}

// Lets a policy's LSTM recognise the ZeRO stage from the calls of the first rank.
class StageRecogniser {
 public:
  // Recognises nothing with a null policy, or if the program labelled its calls.
  StageRecogniser(const Policy* policy, const SectionScan& first) : first_(first) {
    if (policy != nullptr && !first.labelled) labeller_.emplace(*policy);
  }
  void Take(const TraceRecord& call) {
    if (!labeller_ || call.kind != static_cast<uint16_t>(RecordKind::kCollective)) return;
    TraceRecord labelled = call;
    labeller_->Label(first_.communicators.at(call.communicator), labelled);
    ++stages_[LabelledStage(labelled)];
  }
  // Stores the stage in `facts` if it is clear.
  void AddTo(WhyFacts& facts) const {
    for (const auto& [stage, count] : stages_) {
      const double share = static_cast<double>(count) / static_cast<double>(first_.calls);
      if (stage == ZeroStage::kUnknown || share < kSureStage) continue;
      facts.recognised = stage;
      facts.recognised_share = share;
    }
  }

 private:
  const SectionScan& first_;
  std::optional<PolicyLabeller> labeller_;
  std::map<ZeroStage, size_t> stages_;
};

// `choices`: whether the call is one of those whose algorithm is looked for.
void Count(const TraceCall& call, bool choices, CallTally& tally) {
  const CollectiveCall& issued = call.issued.call;
  tally.bytes += static_cast<double>(issued.bytes);
  if (static_cast<int>(issued.collective) >= kTunableCollectives) {
    if (call.duration_source != DurationSource::kNone) return;
    ++tally.untimed_between_two[issued.collective];
    tally.untimed_bytes += static_cast<double>(issued.bytes);
    return;
  }
  ++tally.collectives;
  if (!choices) return;
  ++tally.chosen;
  const bool told = call.decision && call.decision->config.algorithm != Algorithm::kUndefined;
  tally.without_algorithm += told ? 0 : 1;
}

// Counts what passes of all ranks' calls.
class JobCounts {
 public:
  JobCounts(const WhyInput& input, const std::vector<SectionScan>& sections, const Policy* policy)
      : sections_(sections),
        hides_ranks_(HidesRanks(input)),
        is_log_(input.calls_are_logged),
        shares_(sections.front().waited_shares),
        ledger_(sections.front().kinds, shares_),
        stage_(Lacks(input, "bytes") ? nullptr : policy, sections.front()) {}

  void Take(size_t section, const StreamedCall& call) {
    const CommunicatorInfo& info = sections_[section].communicators.at(call.record.communicator);
    const TraceCall decoded = DecodedCall(call, info);
    Count(decoded, (info.n_ranks > 1 || hides_ranks_) && (section == 0 || !is_log_), tally_);
    if (section > 0) return;
    tally_.cut_times += decoded.issued.duration_ns >= SaturatedDuration(INT64_MAX) ? 1 : 0;
    summary_.Take(decoded);
    ledger_.Take(decoded);
    stage_.Take(call.record);
    search.Take(call.record, call.step);
  }
  void AddTo(WhyFacts& facts) const {
    facts.summary = SummaryOf(sections_, summary_, ledger_.ledger());
    facts.tally = tally_;
    stage_.AddTo(facts);
  }

  StepSearch search;

 private:
  const std::vector<SectionScan>& sections_;
  bool hides_ranks_;
  bool is_log_;
  SummaryCounts summary_;
  ExposedShares shares_;
  LedgerBuilder ledger_;
  StageRecogniser stage_;
  CallTally tally_;
};

int RanksOf(const std::vector<SectionScan>& sections) {
  int ranks = static_cast<int>(sections.size());
  for (const SectionScan& section : sections) {
    ranks = std::max(ranks, section.description.world);
    for (const auto& [number, info] : section.communicators) ranks = std::max(ranks, info.n_ranks);
  }
  return ranks;
}

// Sets the step, if one is known to repeat. Where none does, its operations need not be read.
Status FindStep(const RecordSource& records, const std::vector<SectionScan>& sections,
                const StepSearch& search, WhyFacts& facts) {
  const StepDivision division = search.Divide(!sections.front().description.order_only());
  const bool repeats = division.marked || division.calls_of_step < search.collectives();
  if (division.paced) facts.paced = search.collectives() - division.skipped;
  if (division.paced || !(repeats || sections.front().labelled)) return {};
  Result<RecordedStep> step = StepOf(records, sections, search);
  if (!step && step.error().kind != ErrorKind::kInvalidArgument) return tl::unexpected(step.error());
  if (step && IsStep(*step, search.collectives())) facts.step = std::move(*step);
  return {};
}

}  // namespace

Result<WhyFacts> FactsOf(const WhyInput& input, const Policy* policy) {
  WhyFacts facts;
  if (!input.trace) return facts;
  const std::shared_ptr<const RecordSource> records = RecordsOf(input);
  DYNAMICCL_TRY(const std::vector<SectionScan> sections, ScanSections(*records, SIZE_MAX));
  if (sections.empty()) return facts;
  JobCounts counts(input, sections, policy);
  DYNAMICCL_CHECK_OK(PassCalls(*records, sections, sections.size(),
                               [&](size_t section, StreamedCall& call) { counts.Take(section, call); }));
  counts.AddTo(facts);
  facts.ranks = RanksOf(sections);
  DYNAMICCL_TRY(facts.times, TimesOf(*records, sections));
  DYNAMICCL_CHECK_OK(FindStep(*records, sections, counts.search, facts));
  return facts;
}

}  // namespace dynamiccl
