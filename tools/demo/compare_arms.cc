// SPDX-License-Identifier: Apache-2.0
// The three arms take turns: default, ours, best of sweep, then again starting with the next one. A change of
// the machine's speed, and the position in a round, thus affect all of them.
#include <algorithm>
#include <cmath>
#include <map>

#include "tools/demo/demo_steps.h"
#include "tools/demo/trainer_run.h"

namespace dynamiccl {
namespace {

// Largest relative difference of losses that counts as equal. Sums of the same fp32 numbers in another order
// differ by a few units of 2^-24 each; over some tens of training steps the losses drift apart by less than
// this.
constexpr double kLossTolerance = 1e-4;

// A chooser under which the training runs.
struct Arm {
  const char* name;
  RuntimeOptions runtime;
};

// Runs by stage and arm.
using RunsOfArms = std::map<std::pair<int, std::string>, std::vector<TrainedSteps>>;

// One sample for each run, the median of its steps. Steps of one run share the state of the machine; pooling
// them would show differences between runs as differences between arms.
StepTimeRow StepTimesOf(int stage, const std::string& arm, const std::vector<TrainedSteps>& runs) {
  StepTimeRow row{.stage = stage, .arm = arm};
  for (const TrainedSteps& run : runs) {
    const size_t warm_up = std::min<size_t>(kWarmUpSteps, run.step_ms.size() - 1);
    row.samples_ms.push_back(
        Summarize({run.step_ms.begin() + static_cast<ptrdiff_t>(warm_up), run.step_ms.end()}).median);
  }
  row.milliseconds = Summarize(row.samples_ms);
  return row;
}

// Compares all runs of an arm with the default's first run, step by step.
LossRow LossesOf(int stage, const std::string& arm, const TrainedSteps& reference,
                 const std::vector<TrainedSteps>& runs) {
  LossRow row{.stage = stage, .arm = arm, .tolerance = kLossTolerance};
  row.steps = static_cast<int>(reference.loss.size());
  row.first_loss = runs.front().loss.front();
  row.last_loss = runs.front().loss.back();
  row.bitwise_equal = true;
  for (const TrainedSteps& run : runs) {
    row.bitwise_equal = row.bitwise_equal && run.loss_bits == reference.loss_bits &&
                        run.parameters_sha256 == reference.parameters_sha256;
    for (size_t i = 0; i < std::min(run.loss.size(), reference.loss.size()); ++i) {
      const double difference = std::abs(run.loss[i] - reference.loss[i]) / std::abs(reference.loss[i]);
      row.largest_relative_difference = std::max(row.largest_relative_difference, difference);
    }
  }
  return row;
}

// Every stage once under every arm; the first arm rotates with the round.
Status RunRound(DemoSession& session, const std::vector<Arm>& arms, int round, RunsOfArms& runs) {
  for (int stage = 0; stage < kZeroStageCount; ++stage) {
    for (size_t i = 0; i < arms.size(); ++i) {
      const Arm& arm = arms[(i + static_cast<size_t>(round)) % arms.size()];
      const TrainerRun run{.stage = stage,
                           .shape = session.plan().held_out_shape,
                           .steps = session.plan().compared_steps,
                           .label = CompareLabel(stage, arm.name, round),
                           .runtime = arm.runtime};
      auto steps = RunTrainer(session, run);
      if (steps)
        runs[{stage, arm.name}].push_back(std::move(*steps));
      else
        DYNAMICCL_CHECK_OK(session.GoOnWithout(run.label, steps.error()));
    }
  }
  return {};
}

}  // namespace

std::string CompareLabel(int stage, const std::string& arm, int round) {
  std::string name = arm;
  std::replace(name.begin(), name.end(), ' ', '-');
  return fmt::format("compare-stage{}-{}-{}", stage, name, round);
}

Status CompareArms(DemoSession& session, const std::string& policy, const std::string& rules) {
  const std::vector<Arm> arms{{kDefaultArm, {.mode = "observe"}},
                              {kOurArm, {.mode = "frozen", .policy = policy}},
                              {kBestArm, {.mode = "frozen", .rules = rules}}};
  RunsOfArms runs;
  const double begin = session.Elapsed();
  const double budget = session.plan().budget.compare_s;
  // Seconds of the longest round in this process. Rounds that an earlier process finished take no time, so
  // they do not predict the duration of the next one.
  double longest = 0;
  for (int round = 0; round < session.plan().largest_rounds; ++round) {
    const double round_began = session.Elapsed();
    // Another round begins only if it fits the budget, after the rounds that ClearlyDiffer needs.
    if (round >= kFewestRepeats && round_began - begin + longest > budget) break;
    session.Say(fmt::format("round {}: stages 0 to 3 by default, with the policy, with the best of the sweep",
                            round + 1));
    DYNAMICCL_CHECK_OK(RunRound(session, arms, round, runs));
    longest = std::max(longest, session.Elapsed() - round_began);
  }
  for (int stage = 0; stage < kZeroStageCount; ++stage) {
    const std::vector<TrainedSteps>& by_default = runs[{stage, kDefaultArm}];
    if (by_default.empty()) continue;
    const TrainedSteps& reference = by_default.front();
    for (const Arm& arm : arms) {
      const std::vector<TrainedSteps>& arm_runs = runs[{stage, arm.name}];
      if (arm_runs.empty()) continue;
      session.result().step_times.push_back(StepTimesOf(stage, arm.name, arm_runs));
      session.result().losses.push_back(LossesOf(stage, arm.name, reference, arm_runs));
    }
  }
  return {};
}

}  // namespace dynamiccl
