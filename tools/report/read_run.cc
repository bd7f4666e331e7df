// SPDX-License-Identifier: Apache-2.0
// Counts a run in passes. The first one finds the communicators, the marks and the means that the second one
// needs to count calls. A third one follows only where many calls were timed, or where no step was marked.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "tools/report/recognised_labels.h"
#include "tools/report/run_report.h"

namespace dynamiccl {
namespace {

// Counts of the calls of the first section.
class RunCounts {
 public:
  explicit RunCounts(const SectionScan& first)
      : shares_(first.waited_shares),
        ledger_(first.kinds, shares_),
        versions_(first.description.lost == 0),
        over_time_(first) {}

  void Take(const TraceCall& call, int nodes) {
    summary_.Take(call);
    ledger_.Take(call);
    keys.Take(call, nodes);
    stages_.Take(call);
    versions_.Take(call, nodes);
    over_time_.Take(call);
  }
  // Fills in all counts but those of the keys and of the step.
  void AddTo(const std::vector<SectionScan>& sections, RunReport& run) const {
    run.summary = SummaryOf(sections, summary_, ledger_.ledger());
    run.stages = stages_.Account();
    run.versions = versions_.versions();
    run.over_time = over_time_.over_time();
    run.length_ms = run.over_time.length_ms;
  }

  KeyCounts keys;

 private:
  SummaryCounts summary_;
  ExposedShares shares_;
  LedgerBuilder ledger_;
  StageCounts stages_;
  VersionList versions_;
  BytesByTime over_time_;
};

// Labels the calls of the first section, if something recognises them.
class RunLabels {
 public:
  RunLabels(const SectionScan& first, const Recogniser& recogniser) {
    if (first.labelled) return;
    if (recogniser.decisions && first.recognised) {
      by_ = kJobsOwnPolicy;
    } else if (recogniser.policy) {
      by_ = recogniser.name;
      policy_.emplace(*recogniser.policy);
    }
  }
  void Label(const CommunicatorInfo& communicator, StreamedCall& call) {
    if (policy_)
      policy_->Label(communicator, call.record);
    else if (!by_.empty() && call.recognised)
      LabelByDecision(DecisionOf(*call.recognised), call.record);
  }
  const std::string& by() const { return by_; }

 private:
  std::string by_;
  std::optional<PolicyLabeller> policy_;
};

// The sections and charts of one run while its passes go on.
class RunReading {
 public:
  RunReading(const RecordSource& source, const std::vector<SectionScan>& sections,
             const Recogniser& recogniser)
      : source_(source),
        sections_(sections),
        timed_(std::ranges::none_of(
            sections, [](const SectionScan& section) { return section.description.order_only(); })),
        counts_(sections.front()),
        labels_(sections.front(), recogniser),
        chart_(sections) {}

  Status CountCalls() {
    const bool draws = drawn_ = timed_ && chart_.span_known();
    return PassCalls(source_, sections_, draws ? kShownLanes : 1, [&](size_t section, StreamedCall& call) {
      if (section == 0) labels_.Label(InfoOf(section, call), call);
      const TraceCall decoded = DecodedCall(call, InfoOf(section, call));
      if (section == 0) counts_.Take(decoded, InfoOf(section, call).n_nodes);
      if (draws)
        chart_.Draw(section, decoded);
      else if (section == 0)
        chart_.FindMiddle(decoded);
    });
  }

  // The pass over calls whose times could not be summed up at once, and for a chart without marked steps.
  Status CountAgain() {
    const bool draws = timed_ && !drawn_ && chart_.span_known();
    const bool counts = counts_.keys.needs_second_pass();
    if (!draws && !counts) return {};
    counts_.keys.BeginAgain();
    return PassCalls(source_, sections_, draws ? kShownLanes : 1, [&](size_t section, StreamedCall& call) {
      const TraceCall decoded = DecodedCall(call, InfoOf(section, call));
      if (counts && section == 0) counts_.keys.TakeAgain(decoded, InfoOf(section, call).n_nodes);
      if (draws) chart_.Draw(section, decoded);
    });
  }

  void AddTo(RunReport& run) const {
    const SectionScan& first = sections_.front();
    counts_.AddTo(sections_, run);
    run.keys = counts_.keys.Accounts();
    if (!labels_.by().empty()) run.recognised_by = labels_.by();
    run.waited_shares = first.waited_shares;
    if (!timed_) {
      run.over_time = {};
      run.length_ms = 0;
      return;
    }
    run.step = chart_.Window();
    run.step_ms = MarkedStepMs(first.steps).value_or(0);
    run.sample_times = SampleTimesOf(first.samples);
  }

 private:
  const CommunicatorInfo& InfoOf(size_t section, const StreamedCall& call) const {
    return sections_[section].communicators.at(call.record.communicator);
  }

  const RecordSource& source_;
  const std::vector<SectionScan>& sections_;
  bool timed_;
  RunCounts counts_;
  RunLabels labels_;
  StepLanes chart_;
  bool drawn_ = false;
};

}  // namespace

Result<RunReport> ReadRun(const std::string& path, const RecordSource& source, const Recogniser& recogniser,
                          const std::string& recognised_by) {
  RunReport run;
  run.name = std::filesystem::path(path).filename().string();
  DYNAMICCL_TRY(const std::vector<SectionScan> sections, ScanSections(source, kShownLanes));
  if (sections.empty()) return run;
  run.recognised_by = recognised_by;
  RunReading reading(source, sections, recogniser);
  DYNAMICCL_CHECK_OK(reading.CountCalls());
  DYNAMICCL_CHECK_OK(reading.CountAgain());
  reading.AddTo(run);
  return run;
}

}  // namespace dynamiccl
