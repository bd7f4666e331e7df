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

}  // namespace

Result<System> SystemOfTimes(const RecordedStep& step) {
  if (step.times.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "the trace has no times of collectives"),
                    "record with DYNAMICCL_TIMES=all, or name a --system (`dynamiccl calibrate` makes one)");
  return FitSystem("recorded times", step.times, {});
}

std::string CallsNotSimulated(const RecordedStep& step) {
  if (step.between_two == 0) return {};
  return fmt::format(
      "{} calls of SendRecv, Send and Recv (all-to-all consists of these), {:.0f} % of the bytes, are not "
      "simulated: what a step waits for them counts as computing, which no change makes shorter",
      step.between_two, 100 * step.between_two_share);
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
  const StepPrediction prediction(system, step.ranks_per_node,
                                  on_host ? HostSchedule(base, step) : SeenSchedule());
  DYNAMICCL_TRY(advice.compute, prediction.ComputeOf(base, step, advice.step_ns));
  DYNAMICCL_TRY(advice.simulated, prediction.Of(base, advice.compute));
  const TensorsOn device = on_host ? TensorsOn::kCpus : TensorsOn::kGpus;
  for (PossibleChange& change : PossibleChanges(base, step.ranks_per_node, device)) {
    DYNAMICCL_TRY(const PredictedStep predicted, prediction.Of(change.job, advice.compute));
    advice.changes.push_back({std::move(change), predicted});
  }
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
  return text;
}

}  // namespace dynamiccl
