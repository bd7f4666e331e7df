// SPDX-License-Identifier: Apache-2.0
// Trains every training shape (model and batch) and the held-out shape in ZeRO stages 0 to 3 with NCCL's own
// choices, and records the calls.
#include "tools/demo/demo_steps.h"
#include "tools/demo/trainer_run.h"

namespace dynamiccl {
namespace {

// Number of training steps in which every size that the ZeRO stage calls occurs.
constexpr int kStepsForSizes = 2;

std::string ShapeText(const TrainingShape& shape) {
  return fmt::format("{} layers of width {}, buckets of {}, seed {}", shape.layers, shape.hidden,
                     FormatBytes(static_cast<uint64_t>(shape.bucket_bytes)), shape.seed);
}

// Runs the trainer and adds the path of its trace to `traces`. A run that fails is noted as missing and is no
// error.
Status RecordOne(DemoSession& session, const TrainerRun& run, std::vector<std::string>& traces) {
  const auto steps = RunTrainer(session, run);
  if (!steps) return session.GoOnWithout(run.label, steps.error());
  traces.push_back(TracePath(session, run.label));
  return {};
}

}  // namespace

Result<RecordedRuns> RecordRuns(DemoSession& session) {
  const DemoPlan& plan = session.plan();
  RecordedRuns runs;
  for (size_t i = 0; i < plan.training_shapes.size(); ++i) {
    session.Say("stages 0 to 3, " + ShapeText(plan.training_shapes[i]));
    for (int stage = 0; stage < kZeroStageCount; ++stage) {
      TrainerRun run{.stage = stage, .shape = plan.training_shapes[i], .steps = plan.recorded_steps};
      run.label = fmt::format("train-{}-stage{}", i, stage);
      run.runtime.mode = "observe";
      DYNAMICCL_CHECK_OK(RecordOne(session, run, runs.training));
    }
  }
  session.Say("held out: " + ShapeText(plan.held_out_shape));
  for (int stage = 0; stage < kZeroStageCount; ++stage) {
    TrainerRun run{.stage = stage, .shape = plan.held_out_shape, .steps = kStepsForSizes};
    run.label = fmt::format("held-out-stage{}", stage);
    run.runtime.mode = "observe";
    DYNAMICCL_CHECK_OK(RecordOne(session, run, runs.held_out));
  }
  if (runs.training.empty() || runs.held_out.empty())
    return MakeError(ErrorKind::kPeerFailed, "no training run of the demo could be recorded");
  return runs;
}

}  // namespace dynamiccl
