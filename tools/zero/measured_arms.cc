// SPDX-License-Identifier: Apache-2.0
#include "tools/zero/measured_arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

// Number of steps at the start of a run that are not measured, because they touch memory for the first time.
constexpr size_t kWarmUpSteps = 2;

double StepMilliseconds(const TrainerReport& report) {
  const auto& all = report.step_ms;
  return Median(std::span(all).subspan(std::min(kWarmUpSteps, all.size() - 1)));
}

}  // namespace

double MeasuredArm::Median() const {
  return dynamiccl::Median(step_ms);
}
double MeasuredArm::Least() const {
  return *std::min_element(step_ms.begin(), step_ms.end());
}
double MeasuredArm::Most() const {
  return *std::max_element(step_ms.begin(), step_ms.end());
}

Status MeasureArms(TrainerRuns& runs, const std::vector<std::string>& options, int rounds,
                   std::vector<MeasuredArm>& arms, const std::function<void(const std::string&)>& say) {
  for (int round = 0; round < rounds; ++round) {
    say(fmt::format("round {} of {}: {} runs", round + 1, rounds, arms.size()));
    for (size_t i = 0; i < arms.size(); ++i) {
      MeasuredArm& arm = arms[(i + static_cast<size_t>(round)) % arms.size()];
      std::vector<std::string> all = options;
      all.insert(all.end(), arm.arm.options.begin(), arm.arm.options.end());
      DYNAMICCL_TRY(arm.report, runs.Train(all));
      arm.step_ms.push_back(StepMilliseconds(arm.report));
    }
  }
  return {};
}

}  // namespace dynamiccl
