// SPDX-License-Identifier: Apache-2.0
// Compares three settings, called arms, in each ZeRO stage: NCCL's default, the policy's choice, and the best
// configs of the sweep. Losses come from separate runs. Step times come from jobs in which the arms alternate
// every few steps (`dynamiccl ab`), because step times differ more from one start of a job to the next than
// between arms.
#include <algorithm>
#include <cmath>
#include <map>

#include "tools/ab/job_in_turns.h"
#include "tools/ab/turn_comparison.h"
#include "tools/demo/demo_steps.h"
#include "tools/demo/trainer_run.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

// Largest relative difference of losses that counts as equal. Sums of the same fp32 numbers in another order
// differ by a few units of 2^-24 each; over some tens of training steps the losses drift apart by less than
// this.
constexpr double kLossTolerance = 1e-4;

// Compares a run's losses with those of the default run, step by step.
LossRow LossesOf(int stage, const TrainedSteps& reference, const TrainedSteps& run) {
  LossRow row{.stage = stage, .arm = kOurArm, .tolerance = kLossTolerance};
  row.steps = static_cast<int>(reference.loss.size());
  row.first_loss = run.loss.front();
  row.last_loss = run.loss.back();
  row.bitwise_equal =
      run.loss_bits == reference.loss_bits && run.parameters_sha256 == reference.parameters_sha256;
  for (size_t i = 0; i < std::min(run.loss.size(), reference.loss.size()); ++i) {
    const double difference = std::abs(run.loss[i] - reference.loss[i]) / std::abs(reference.loss[i]);
    row.largest_relative_difference = std::max(row.largest_relative_difference, difference);
  }
  return row;
}

// Trains the model in this ZeRO stage by default and under the policy, and compares the losses.
Status CompareLosses(DemoSession& session, int stage, const std::string& policy) {
  TrainerRun run{.stage = stage,
                 .shape = session.plan().held_out_shape,
                 .steps = session.plan().compared_steps,
                 .label = CompareLabel(stage, kDefaultArm),
                 .runtime = {.mode = "observe"}};
  const auto by_default = RunTrainer(session, run);
  if (!by_default) DYNAMICCL_CHECK_OK(session.GoOnWithout(run.label, by_default.error()));
  run.label = CompareLabel(stage, kOurArm);
  run.runtime = {.mode = "frozen", .policy = policy};
  const auto ours = RunTrainer(session, run);
  if (!ours) return session.GoOnWithout(run.label, ours.error());
  if (by_default) session.result().losses.push_back(LossesOf(stage, *by_default, *ours));
  return {};
}

StepTimeRow RowOf(int stage, const SettingTimes& setting, bool is_default) {
  StepTimeRow row{.stage = stage, .arm = setting.name, .milliseconds = Summarize(setting.samples_ms)};
  row.samples_ms = setting.samples_ms;
  if (is_default) return row;
  row.ratio = setting.ratio;
  if (!std::isfinite(setting.interval.high)) return row;
  row.low = setting.interval.low;
  row.high = setting.interval.high;
  return row;
}

// For each ZeRO stage the calls of rank 0 in each start of the job, in which the three arms alternated.
using StartsOfStages = std::map<int, std::vector<SectionCalls>>;

// Starts one job for each ZeRO stage, in which the three arms alternate. The policy is loaded all the time.
// In the steps of the other two arms, rules leave the choice to NCCL or force the best config of the sweep.
Status StartStages(DemoSession& session, const std::string& policy, const EnvironmentChanges& in_turn,
                   int number, StartsOfStages& starts) {
  for (int stage = 0; stage < kZeroStageCount; ++stage) {
    const TrainerRun run{.stage = stage,
                         .shape = session.plan().held_out_shape,
                         .steps = session.plan().steps_in_turns,
                         .label = fmt::format("{}-{}", CompareLabel(stage, "in turns"), number),
                         .runtime = {.mode = "frozen", .policy = policy},
                         .environment = in_turn};
    if (const auto steps = RunTrainer(session, run); !steps) {
      DYNAMICCL_CHECK_OK(session.GoOnWithout(run.label, steps.error()));
      continue;
    }
    DYNAMICCL_TRY(const Trace trace, ReadTrace(TracePath(session, run.label)));
    if (!trace.sections.empty()) starts[stage].push_back(CallsOf(trace.sections.front()));
  }
  return {};
}

// Adds the step times of the three arms in one ZeRO stage to the result. If the recordings hold no complete
// turns to compare, the step times of the stage are noted as missing.
void AddStepTimes(int stage, const std::vector<SectionCalls>& starts, DemoSession& session) {
  const auto compared = CompareTurns(starts, {kDefaultArm, kOurArm, kBestArm}, kStepsOfArm);
  if (!compared) {
    session.result().missing.push_back(
        {fmt::format("step times of stage {}", stage), compared.error().message});
    return;
  }
  for (size_t i = 0; i < compared->settings.size(); ++i)
    session.result().step_times.push_back(RowOf(stage, compared->settings[i], i == 0));
}

}  // namespace

std::string CompareLabel(int stage, const std::string& arm) {
  std::string name = arm;
  std::replace(name.begin(), name.end(), ' ', '-');
  return fmt::format("compare-stage{}-{}", stage, name);
}

Status CompareArms(DemoSession& session, const std::string& policy, const std::string& rules) {
  const double begin = session.Elapsed(), budget = session.plan().budget.compare_s;
  session.Say("stages 0 to 3 by default and with the policy: losses and choices");
  for (int stage = 0; stage < kZeroStageCount; ++stage)
    DYNAMICCL_CHECK_OK(CompareLosses(session, stage, policy));
  DYNAMICCL_TRY(const EnvironmentChanges in_turn,
                TurnsEnvironment({"nccl", "default", rules}, kStepsOfArm, session.output_dir()));
  StartsOfStages starts;
  // Seconds of the longest round in this process. A round starts one job for each ZeRO stage. Jobs that an
  // earlier process finished are skipped and take no time, so they do not predict how long the next round
  // takes.
  double longest = 0;
  for (int number = 0; number < session.plan().largest_starts; ++number) {
    const double began = session.Elapsed();
    if (number > 0 && began - begin + longest > budget) break;
    session.Say(
        fmt::format("start {}: stages 0 to 3, default, policy and best of the sweep in turns", number + 1));
    DYNAMICCL_CHECK_OK(StartStages(session, policy, in_turn, number, starts));
    longest = std::max(longest, session.Elapsed() - began);
  }
  for (const auto& [stage, of_stage] : starts) AddStepTimes(stage, of_stage, session);
  return {};
}

}  // namespace dynamiccl
