// SPDX-License-Identifier: Apache-2.0
// Fits the job's computing time so that the simulated step takes as long as the recorded one. Then simulates
// each change of the job's settings with the same computing time.
#include "tools/advise/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/collective/size_class.h"
#include "src/simulator/fit_system.h"

namespace dynamiccl {
namespace {

// The share of recorded calls that the simulated job must issue too. Below it, the advice says that the two
// differ.
constexpr double kMaxCalls = 0.999;

double Ms(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-6;
}

// Memory with its sign, "+12M"; changes below 1 KiB are "0".
std::string Memory(double bytes) {
  if (std::fabs(bytes) < 1024) return "0";
  return fmt::format("{}{}", bytes < 0 ? '-' : '+', FormatBytes(static_cast<uint64_t>(std::fabs(bytes))));
}

std::string Row(const AdvisedChange& one, const PredictedStep& base) {
  const double ratio = static_cast<double>(one.predicted.step_ns) / static_cast<double>(base.step_ns);
  const std::string& remark = one.change.remark;
  return fmt::format("{:<44} {:>10.2f} {:>+7.1f} % {:>9.2f} {:>9}  {}{}\n", one.change.what,
                     Ms(one.predicted.step_ns), 100 * (ratio - 1), Ms(one.predicted.exposed_ns),
                     Memory(one.change.memory_bytes), one.change.how,
                     remark.empty() ? "" : fmt::format(" ({})", remark));
}

// Adds the step time that each change would have if the collectives were as fast, or as slow, as at this end
// of their intervals. The recorded step has the same collectives, so its computing time is worked out anew.
Status WidenIntervals(const StepPrediction& prediction, const RecordedStep& step, Advice& advice) {
  DYNAMICCL_TRY(const TrainerCompute compute,
                prediction.ComputeOf(advice.recognised.job, step, advice.step_ns));
  for (AdvisedChange& one : advice.changes) {
    DYNAMICCL_TRY(const PredictedStep predicted, prediction.Of(one.change.job, compute));
    if (!one.interval) one.interval = StepInterval{one.predicted.step_ns, one.predicted.step_ns};
    one.interval->low_ns = std::min(one.interval->low_ns, predicted.step_ns);
    one.interval->high_ns = std::max(one.interval->high_ns, predicted.step_ns);
  }
  return {};
}

// Sets the intervals of all changes, or Advice::no_interval.
Status AddIntervals(const RecordedStep& step, System system, const SeenSchedule& seen, Advice& advice) {
  if (system.intervals.empty()) {
    advice.no_interval = fmt::format("no errors are stated for {}", system.name);
    return {};
  }
  for (const IntervalPart part : {IntervalPart::kShortest, IntervalPart::kLongest}) {
    system.part = part;
    const Status widened = WidenIntervals(StepPrediction(system, step.ranks_per_node, seen), step, advice);
    if (widened) continue;
    if (widened.error().kind != ErrorKind::kUnsupported) return widened;
    advice.no_interval = widened.error().message;
    for (AdvisedChange& one : advice.changes) one.interval.reset();
    return {};
  }
  return {};
}

// Returns a second table with the interval of each change, or one line that says why there is none.
std::string Intervals(const Advice& advice) {
  if (advice.changes.empty()) return "";
  if (!advice.no_interval.empty()) return fmt::format("\nno intervals: {}\n", advice.no_interval);
  std::string text = fmt::format("\n{:<44} {:>10}    {:>10}  {}\n", "change", "step ms", "",
                                 "if every collective is at one end of its 90 % interval");
  for (const AdvisedChange& one : advice.changes) {
    if (!one.interval) continue;
    text += fmt::format("{:<44} {:>10.2f} to {:>10.2f}\n", one.change.what, Ms(one.interval->low_ns),
                        Ms(one.interval->high_ns));
  }
  return text;
}

}  // namespace

Result<System> SystemOfTimes(const RecordedStep& step) {
  if (step.times.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "the trace has no times of collectives"),
                    "record with DYNAMICCL_TIMES=all, or name a --system (`dynamiccl calibrate` makes one)");
  return FitSystem("recorded times", step.times, {});
}

StepInterval MeasuredInterval(int64_t predicted_ns) {
  constexpr double kFactor = 1.27;
  const auto predicted = static_cast<double>(predicted_ns);
  return {static_cast<int64_t>(predicted / kFactor), static_cast<int64_t>(predicted * kFactor)};
}

std::string CallsNotSimulated(const RecordedStep& step) {
  if (step.between_two.empty()) return {};
  return fmt::format(
      "{} ({:.0f} % of the bytes) are not simulated: what a step waits for them counts as computing, which "
      "no "
      "change makes shorter",
      CallsText(step.between_two), 100 * step.between_two_share);
}

Result<Advice> Advise(const RecordedStep& step, RecognisedJob job, const System& system, int64_t step_ns,
                      bool on_host) {
  Advice advice;
  advice.recognised = std::move(job);
  advice.ranks_per_node = step.ranks_per_node;
  advice.step_ns = step_ns > 0 ? step_ns : step.step_ns;
  if (advice.step_ns <= 0)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "the trace does not tell how long a step takes"),
                    "say it with --step-ms");
  const AdvisedJob& base = advice.recognised.job;
  DYNAMICCL_TRY(advice.share_of_calls, ShareOfCalls(base, step));
  const SeenSchedule seen = on_host ? HostSchedule(base, step) : SeenSchedule();
  const StepPrediction prediction(system, step.ranks_per_node, seen);
  DYNAMICCL_TRY(advice.compute, prediction.ComputeOf(base, step, advice.step_ns));
  DYNAMICCL_TRY(advice.simulated, prediction.Of(base, advice.compute));
  const TensorsOn device = on_host ? TensorsOn::kCpus : TensorsOn::kGpus;
  for (PossibleChange& change : PossibleChanges(base, step.ranks_per_node, device)) {
    DYNAMICCL_TRY(const PredictedStep predicted, prediction.Of(change.job, advice.compute));
    advice.changes.push_back({std::move(change), predicted, {}});
  }
  DYNAMICCL_CHECK_OK(AddIntervals(step, system, seen, advice));
  std::ranges::stable_sort(advice.changes, {},
                           [](const AdvisedChange& one) { return one.predicted.step_ns; });
  return advice;
}

std::string FormatAdvice(const Advice& advice, const RecordedStep& step, const System& system) {
  const AdvisedJob& job = advice.recognised.job;
  std::string text = fmt::format("{} ranks, {} a node; {}, as {}\n", step.ranks, step.ranks_per_node,
                                 advice.recognised.what, job.framework);
  for (const std::string& note : advice.recognised.notes) text += fmt::format("note: {}\n", note);
  if (step.stage != ZeroStage::kUnknown && !step.recognised_by.empty())
    text += fmt::format("note: the LSTM of {} takes its calls for ZeRO stage {}\n", step.recognised_by,
                        Name(step.stage));
  if (const std::string note = CallsNotSimulated(step); !note.empty())
    text += fmt::format("note: {}\n", note);
  if (advice.share_of_calls < kMaxCalls)
    text += fmt::format("note: only {:.0f} % of the recorded calls are what this job would issue\n",
                        100 * advice.share_of_calls);
  text += fmt::format(
      "step: {:.2f} ms recorded ({} steps, 80 % of them within {:.0f} %), {:.2f} ms simulated on {}, of it "
      "{:.2f} ms exposed communication\n\n",
      Ms(advice.step_ns), step.steps, 100 * step.spread, Ms(advice.simulated.step_ns), system.name,
      Ms(advice.simulated.exposed_ns));
  text += fmt::format("{:<44} {:>10} {:>9} {:>9} {:>9}  {}\n", "change", "step ms", "against", "exposed",
                      "memory", "how");
  for (const AdvisedChange& one : advice.changes) text += Row(one, advice.simulated);
  return text + Intervals(advice);
}

}  // namespace dynamiccl
