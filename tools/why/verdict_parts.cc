// SPDX-License-Identifier: Apache-2.0
// Writes the sentences about NCCL's choices, about ranks that differ, and about changes worth trying.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/collective/size_class.h"
#include "src/simulator/stated_interval.h"
#include "tools/advise/advice.h"
#include "tools/hang/hang_findings.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/trace_summary.h"
#include "tools/why/parts.h"
#include "traces/format/equal_calls.h"
#include "traces/format/record_source.h"
#include "traces/format/trace_merge.h"

namespace dynamiccl {
namespace {

constexpr size_t kMaxRows = 3;
// A choice counts as good when its time is at most this many times that of the best config.
constexpr double kNearBest = 1.01;
// A change of the job is mentioned only if it is predicted to shorten a step by at least this share.
constexpr double kLeastGain = 0.01;
// Newest records that are examined of a job that may have stood still: kTailOfAll of all ranks together,
// which take 32 MiB as records and 60 MiB as calls, and at least kLeastTail of each rank.
constexpr uint64_t kLeastTail = 2048;
constexpr uint64_t kTailOfAll = 1 << 19;

// A collective and size of a sweep for which the library's default was clearly slower than another config.
struct SlowerDefault {
  SweepCell cell;
  TimedConfig by_default, best;
  double ratio = 1;  // time of the default over that of the best
};

// Says how NCCL's own choices compare with the best configs, over all collectives and sizes of a sweep.
struct DefaultsOfSweep {
  size_t cells = 0;  // cells that have a default and another config to compare it with
  std::vector<SlowerDefault> slower;
};

DefaultsOfSweep JudgeDefaults(const MeasurementFile& sweep) {
  DefaultsOfSweep judged;
  for (const SweepCell& cell : CellsOf(sweep)) {
    const TimedConfig by_default = DefaultOf(cell), best = BestOf(cell);
    if (cell.rows.size() < 2 || by_default.microseconds.repeats == 0 || best.microseconds.median <= 0)
      continue;
    ++judged.cells;
    const double ratio = by_default.microseconds.median / best.microseconds.median;
    if (ratio > kNearBest && ClearlyDiffer(by_default.microseconds, best.microseconds))
      judged.slower.push_back({cell, by_default, best, ratio});
  }
  std::ranges::stable_sort(judged.slower, std::ranges::greater{}, &SlowerDefault::ratio);
  return judged;
}

void AddSweep(const MeasurementFile& sweep, std::vector<std::string>& lines) {
  const DefaultsOfSweep judged = JudgeDefaults(sweep);
  if (judged.cells == 0) {
    lines.emplace_back(
        "Only the library's own choice was timed, so nothing says whether another one is faster.");
    return;
  }
  lines.push_back(fmt::format(
      "In {} of {} cases the library's own choice is the best measured, or not surely slower: leave those.",
      judged.cells - judged.slower.size(), judged.cells));
  for (size_t i = 0; i < std::min(kMaxRows, judged.slower.size()); ++i) {
    const SlowerDefault& one = judged.slower[i];
    lines.push_back(
        fmt::format("{} of {} on {}: {} takes {:.1f} us ({:.1f} to {:.1f}), the library's own choice {:.1f} "
                    "({:.1f} to {:.1f}): {:.2f} times as long",
                    Name(one.cell.collective), FormatBytes(one.cell.bytes), one.cell.topology,
                    Name(one.best.config), one.best.microseconds.median, one.best.microseconds.low,
                    one.best.microseconds.high, one.by_default.microseconds.median,
                    one.by_default.microseconds.low, one.by_default.microseconds.high, one.ratio));
  }
}

// Adds a line with the configs that most calls got, and who decided them.
void AddDecisions(const TraceSummary& summary, std::vector<std::string>& lines) {
  std::vector<std::pair<int64_t, std::string>> counted;
  for (const auto& [decision, calls] : summary.decisions)
    if (decision.second != Name(kLeaveNcclAlone) || decision.first != "nccl")
      counted.emplace_back(calls, fmt::format("{} for {} call{} (by {})", decision.second, calls,
                                              calls == 1 ? "" : "s", decision.first));
  std::ranges::stable_sort(counted, std::ranges::greater{}, &std::pair<int64_t, std::string>::first);
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(kMaxRows, counted.size()); ++i) texts.push_back(counted[i].second);
  if (!texts.empty())
    lines.push_back(fmt::format("Used{}: {}{}.", summary.sections > 1 ? " on the first rank" : "",
                                fmt::join(texts, ", "), counted.size() > kMaxRows ? ", and others" : ""));
}

// The newest records of each rank, and the numbers of sends and receives among those that are left out.
struct Newest {
  Trace trace;
  std::vector<TransferCounts> left_out;
};

// Adds the first finding about a job that may have stood still. A null `newest` means that the input's trace
// has the records. Ranks without a file are no finding here, because the user may not have passed their
// files.
void AddStanding(const WhyInput& input, const Newest* newest, Trouble& trouble) {
  JobCalls job;
  for (size_t i = 0; i < input.trace->sections.size(); ++i) {
    const TraceSection& section = input.trace->sections[i];
    if (newest == nullptr)
      job.Add(section);
    else
      job.Add(newest->trace.sections[i], section.lost == 0 ? &newest->left_out[i] : nullptr);
  }
  HangDiagnosis diagnosis = DiagnoseHang(job);
  trouble.unmatched = std::move(diagnosis.unmatched);
  const auto found = std::ranges::find_if(diagnosis.findings, [](const HangFinding& finding) {
    return finding.kind != HangKind::kAbsent && finding.kind != HangKind::kOrderDiffers;
  });
  if (found == diagnosis.findings.end()) return;
  trouble.lines.emplace_back("When these files were written:");
  std::ranges::copy(found->text, std::back_inserter(trouble.lines));
}

// Returns the newest records of a trace whose records are in files.
Result<Newest> ReadNewest(const WhyInput& input) {
  Newest newest;
  const uint64_t records = std::max(kLeastTail, kTailOfAll / input.trace->sections.size());
  DYNAMICCL_TRY(newest.trace, ReadTail(*input.streamed, records, &newest.left_out));
  return newest;
}

// Compares the ranks' calls: first those of `newest`, and then all calls if `newest` lacks older ones. The
// inner status says how they differ, the outer error that the files could not be read.
Result<Status> RanksAgree(const WhyInput& input, const Trace& newest) {
  if (const Status agree = CheckRanksAgree(newest); !agree) return Result<Status>(agree);
  const bool is_all = std::ranges::equal(input.trace->sections, newest.sections, {}, &TraceSection::lost,
                                         &TraceSection::lost);
  return is_all ? Result<Status>(Status()) : CompareRanks(*input.streamed);
}

// Returns "saves 12.0 % of the step, predicted (-11 to 31 %)". The interval holds the measured errors of such
// predictions, and the ends of the collectives' own intervals where they are wider.
std::string SavingText(const AdvisedChange& one, int64_t base_ns) {
  const auto saving = [&](int64_t step_ns) {
    return 100 * (1 - static_cast<double>(step_ns) / static_cast<double>(base_ns));
  };
  StepInterval interval = MeasuredInterval(one.predicted.step_ns);
  if (one.interval) {
    interval.low_ns = std::min(interval.low_ns, one.interval->low_ns);
    interval.high_ns = std::max(interval.high_ns, one.interval->high_ns);
  }
  return fmt::format("saves {:.1f} % of the step, predicted ({:.0f} to {:.0f} %)",
                     saving(one.predicted.step_ns), saving(interval.high_ns), saving(interval.low_ns));
}

}  // namespace

std::vector<std::string> ChoiceLines(const WhyInput& input, const WhyFacts& facts) {
  std::vector<std::string> lines;
  for (const MeasurementFile& sweep : input.measurements) AddSweep(sweep, lines);
  if (!input.trace || input.trace->sections.empty()) return lines;
  const TraceSummary& summary = facts.summary;
  AddDecisions(summary, lines);
  const auto& unknown = summary.coverage.of[static_cast<size_t>(Coverage::kUnknown)];
  if (unknown.calls < summary.coverage.total.calls)
    lines.push_back("What a tuner can change: " + Describe(summary.coverage) + ".");
  return lines;
}

Result<Trouble> TroubleOf(const WhyInput& input) {
  Trouble trouble;
  if (!input.trace || input.trace->sections.size() < 2) return trouble;
  const bool ended = std::ranges::all_of(input.trace->sections, &TraceSection::closed);
  DYNAMICCL_TRY(const bool equal, RanksHaveEqualCalls(*RecordsOf(input)));
  if (equal && ended) return trouble;
  std::optional<Newest> newest;
  if (input.streamed) {
    DYNAMICCL_TRY(newest, ReadNewest(input));
  }
  DYNAMICCL_TRY(const Status agree, RanksAgree(input, newest ? newest->trace : *input.trace));
  if (!agree) trouble.lines.push_back(agree.error().message + ".");
  if (!ended || !agree) AddStanding(input, newest ? &*newest : nullptr, trouble);
  return trouble;
}

std::vector<std::string> ChangeLines(const WhyInput& input, const WhyFacts& facts) {
  if (!facts.step || facts.step->step_ns <= 0 || facts.step->times.empty()) return {};
  Result<RecognisedJob> job = RecogniseJob(*facts.step);
  Result<System> system = SystemOfTimes(*facts.step);
  if (!job || !system) return {};
  StateSeenIntervals(*system, facts.step->times);
  const Result<Advice> advice = Advise(*facts.step, std::move(*job), *system, 0, RanOnCpus(input));
  if (!advice) return {};
  std::vector<std::string> lines;
  for (const AdvisedChange& one : advice->changes) {
    const double ratio =
        static_cast<double>(one.predicted.step_ns) / static_cast<double>(advice->simulated.step_ns);
    if (ratio > 1 - kLeastGain || lines.size() == kMaxRows) break;
    lines.push_back(fmt::format("{}: {}. {}{}", one.change.what, SavingText(one, advice->simulated.step_ns),
                                one.change.how,
                                one.change.remark.empty() ? "" : fmt::format(" ({})", one.change.remark)));
  }
  if (lines.empty())
    lines.push_back(fmt::format("No change that is known here is predicted to save {:.0f} % of a step.",
                                100 * kLeastGain));
  else
    lines.emplace_back(
        "Of 18 changes that were measured, 17 lay in such intervals; `dynamiccl advise --measure` measures.");
  if (const std::string note = CallsNotSimulated(*facts.step); !note.empty()) lines.push_back(note + ".");
  return lines;
}

}  // namespace dynamiccl
