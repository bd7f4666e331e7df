// SPDX-License-Identifier: Apache-2.0
#include "agents/structure/structure_calibration.h"

#include <gtest/gtest.h>

#include "agents/evaluation/structure_accuracy.h"
#include "agents/structure/structure_training.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl::agents {
namespace {

std::vector<CallSequence> Jobs(uint64_t seed) {
  JobPlan plan = Completed({});
  plan.jobs = 1;
  std::mt19937_64 random(seed);
  return RandomJobs(plan, random);
}

// The answers of a random network are hardly ever right. Calibration must make it answer "unknown" rather
// than wrongly.
TEST(StructureCalibration, WhoKnowsNothingSaysUnknown) {
  const auto policy = test::MakeRandomPolicy(4);
  CalibrateStructure(Jobs(1), {.answers_right = 0.95}, policy->tensors);
  policy->tensors.structure.stage_hold_calls = 1;
  const StructureAccuracy accuracy = JudgePolicy(*policy, Jobs(2));
  EXPECT_LT(static_cast<double>(accuracy.phase.wrong), 0.15 * static_cast<double>(accuracy.phase.calls()));
  EXPECT_LT(static_cast<double>(accuracy.stage.wrong), 0.15 * static_cast<double>(accuracy.stage.calls()));
}

TEST(StructureCalibration, TheThresholdHasAsManyAlarmsAsAllowed) {
  const auto policy = test::MakeRandomPolicy(5);
  const std::vector<CallSequence> jobs = Jobs(3);
  for (const double allowed : {0.0, 0.01, 0.2}) {
    const CalibrationReport report =
        CalibrateStructure(jobs, {.answers_right = 0.9, .false_alarms = allowed}, policy->tensors);
    policy->tensors.structure.settled_calls = 1 << 16;
    uint64_t alarms = 0;
    for (const CallSequence& job : jobs) {
      StructureAgent agent(*policy);
      const size_t quiet = job.step_begins.size() > 2 ? job.step_begins[2] : job.calls.size();
      for (size_t i = 0; i < job.calls.size(); ++i)
        alarms += agent.Step(job.calls[i].call).changed && i >= quiet ? 1 : 0;
    }
    EXPECT_GT(report.quiet_calls, 1000u);
    EXPECT_LE(static_cast<double>(alarms), allowed * static_cast<double>(report.quiet_calls));
  }
}

}  // namespace
}  // namespace dynamiccl::agents
