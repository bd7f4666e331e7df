// SPDX-License-Identifier: Apache-2.0
// Runs the trainer with each suggested change and compares the measured step times with the predicted ones.
#include "tools/advise/measured_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/statistics.h"
#include "tools/advise/trainer_options.h"

namespace dynamiccl {
namespace {

// Largest relative error at which a prediction counts as good.
constexpr double kAskedError = 0.1;

MeasuredChange Compare(const AdvisedChange& advised, const PredictedStep& simulated, const MeasuredArm& base,
                       const MeasuredArm& arm) {
  std::vector<double> ratios;
  for (size_t round = 0; round < arm.step_ms.size(); ++round)
    ratios.push_back(arm.step_ms[round] / base.step_ms[round]);
  MeasuredChange change;
  change.what = advised.change.what;
  change.predicted_ratio =
      static_cast<double>(advised.predicted.step_ns) / static_cast<double>(simulated.step_ns);
  change.measured_ratio = Median(ratios);
  change.least = *std::ranges::min_element(ratios);
  change.most = *std::ranges::max_element(ratios);
  change.step_ms = arm.Median();
  return change;
}

}  // namespace

Result<MeasuredAdvice> MeasureAdvice(TrainerRuns& runs, const std::vector<std::string>& options,
                                     const Advice& advice, int rounds,
                                     const std::function<void(const std::string&)>& say) {
  std::vector<MeasuredArm> arms = {{.arm = {"unchanged", options}}};
  const AdvisedJob& base = advice.recognised.job;
  for (const AdvisedChange& one : advice.changes)
    arms.push_back({.arm = {one.change.what, Replaced(options, OptionsFor(base, one.change.job))}});
  DYNAMICCL_CHECK_OK(MeasureArms(runs, {}, rounds, arms, say));
  MeasuredAdvice measured{arms[0].Median(), arms[0].Least(), arms[0].Most(), {}};
  for (size_t i = 0; i < advice.changes.size(); ++i)
    measured.changes.push_back(Compare(advice.changes[i], advice.simulated, arms[0], arms[i + 1]));
  return measured;
}

std::string FormatMeasured(const MeasuredAdvice& measured, const Advice& advice) {
  std::string text = fmt::format(
      "unchanged: {:.2f} ms measured ({:.2f} to {:.2f}), {:.2f} ms in the trace\n\n| change | step, ms | "
      "predicted | measured | rounds | error |\n|---|---|---|---|---|---|\n",
      measured.step_ms, measured.least, measured.most, static_cast<double>(advice.step_ns) * 1e-6);
  size_t within = 0;
  for (const MeasuredChange& one : measured.changes) {
    const bool close = std::fabs(one.Error()) <= kAskedError;
    within += close ? 1 : 0;
    text += fmt::format("| {} | {:.2f} | {:.3f} | {:.3f} | {:.3f} to {:.3f} | {}{:+.1f} %{} |\n", one.what,
                        one.step_ms, one.predicted_ratio, one.measured_ratio, one.least, one.most,
                        close ? "" : "**", 100 * one.Error(), close ? "" : "**");
  }
  text += fmt::format("\n{} of {} changes are predicted within 10 %\n", within, measured.changes.size());
  return text;
}

}  // namespace dynamiccl
