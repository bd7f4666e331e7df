// SPDX-License-Identifier: Apache-2.0
// Predicts a step time by simulating two steps and four steps and taking the difference. The difference
// leaves out the time in which the first steps fill the pipeline.
#include "tools/advise/step_prediction.h"

#include <algorithm>
#include <cmath>

#include "src/simulator/event_simulation.h"
#include "tools/simulate/step_program.h"

namespace dynamiccl {
namespace {

// Numbers of simulated steps. The difference of the two simulated times is the time of the later steps, which
// are in the steady state.
constexpr int kFirstSteps = 2, kAllSteps = 4;
// Nanoseconds that AdamW takes to update one number on one core, used if the trace does not show the time. It
// follows from docs/results/zero-trainer.md: a step takes 1332 ms in stage 0 and 1281 ms in stage 1, where
// each rank updates 30 million fewer numbers.
constexpr double kUpdateNsPerElement = 1.7;
// Halvings of the bisection that finds the time of a pass. 20 determine it to a millionth of the step's time.
constexpr int kHalvings = 20;

// Number of passes of this phase in a step. Consecutive calls of the phase belong to one pass.
int64_t PassesOf(const std::vector<WireOperation>& operations, Phase phase) {
  int64_t passes = 0;
  for (size_t i = 0; i < operations.size(); ++i)
    passes += operations[i].phase == phase && (i == 0 || operations[i - 1].phase != phase) ? 1 : 0;
  return passes;
}

// Computing time in nanoseconds of the passes that issue no call. The simulated rank spends this time before
// its first call.
double SilentNs(int64_t micro_steps, const std::vector<WireOperation>& operations,
                const StepCompute& compute) {
  const int64_t forwards = PassesOf(operations, Phase::kForward);
  const int64_t backwards = PassesOf(operations, Phase::kBackward);
  const int64_t all = std::max({micro_steps, forwards, backwards});
  return static_cast<double>(all - forwards) * compute.forward_ns +
         static_cast<double>(all - backwards) * compute.backward_ns;
}

// Appends one step to a program of several steps. The indices of the step's collectives are shifted
// accordingly.
void Append(const RankProgram& step, RankProgram& program) {
  const auto offset = static_cast<int64_t>(program.collectives.size());
  program.collectives.insert(program.collectives.end(), step.collectives.begin(), step.collectives.end());
  for (Action action : step.actions) {
    if (action.kind != ActionKind::kCompute) action.value += offset;
    program.actions.push_back(action);
  }
}

// Returns how many units (parameters that ZeRO gathers together) the job gathers ahead in its forward pass.
int GathersAhead(const AdvisedJob& job) {
  const std::string depth = SettingOf(job, "forward_prefetch");
  return depth.empty() ? 1 : std::stoi(depth);
}

double ElementsOf(const ModelShape& model) {
  return static_cast<double>(model.Elements());
}

}  // namespace

// `pass_ns` includes the computing time of the optimizer.
Result<RankProgram> StepPrediction::ProgramOfFramework(const AdvisedJob& job, double pass_ns, int steps,
                                                       SystemDemands& demands) const {
  DYNAMICCL_TRY(const std::vector<WireOperation> operations, OperationsOf(job));
  StepCompute compute{.forward_ns = pass_ns * kForwardShare,
                      .backward_ns = pass_ns * (1 - kForwardShare),
                      .optimizer_ns = 0,
                      .arrivals = seen_.arrivals,
                      .unpack_ns = seen_.unpack_ns};
  if (!seen_.arrivals.empty()) {
    compute.backward_ns = seen_.arrivals.back().ns;
    compute.forward_ns = std::max(0.0, pass_ns - compute.backward_ns);
  }
  const StepLayout layout{job.world, ranks_per_node_, kLeaveNcclAlone, GathersAhead(job), seen_.host_waits};
  DYNAMICCL_TRY(RankProgram step, ProgramOf(operations, layout, compute, demands));
  DYNAMICCL_TRY(const int64_t micro_steps, MicroStepsOf(job));
  const auto silent = static_cast<int64_t>(SilentNs(micro_steps, operations, compute));
  if (silent > 0) step.actions.insert(step.actions.begin(), {ActionKind::kCompute, silent});
  RankProgram program;
  for (int i = 0; i < steps; ++i) Append(step, program);
  return program;
}

Result<SimulatedJob> StepPrediction::JobOf(const AdvisedJob& job, const TrainerCompute& compute,
                                           int steps) const {
  SystemDemands demands(system_);
  SimulatedJob simulated;
  simulated.n_ranks = job.world.Ranks();
  simulated.ranks_per_node = ranks_per_node_;
  simulated.port_gbps = PortGbps(system_);
  simulated.network_gbps = NetworkGbps(system_);
  simulated.layouts = LayoutsOf(job.world);
  simulated.host_share = seen_.host_share;
  if (job.IsTrainer()) {
    DYNAMICCL_TRY(TrainerProgram trainer, ProgramOfTrainer(job, compute, steps, ranks_per_node_, demands));
    simulated.programs.push_back(std::move(trainer.program));
  } else {
    DYNAMICCL_TRY(RankProgram program, ProgramOfFramework(job, compute.pass_ns, steps, demands));
    simulated.programs.push_back(std::move(program));
  }
  return simulated;
}

Result<PredictedStep> StepPrediction::Of(const AdvisedJob& job, const TrainerCompute& compute) const {
  DYNAMICCL_TRY(const SimulatedJob first, JobOf(job, compute, kFirstSteps));
  DYNAMICCL_TRY(const SimulatedJob all, JobOf(job, compute, kAllSteps));
  DYNAMICCL_TRY(const SimulationResult before, Simulate(first));
  DYNAMICCL_TRY(const SimulationResult after, Simulate(all));
  const int steps = kAllSteps - kFirstSteps;
  return PredictedStep{(after.finished_ns - before.finished_ns) / steps,
                       (after.observed[0].stalled_ns - before.observed[0].stalled_ns) / steps};
}

Result<double> StepPrediction::UpdateNsPerElement(const AdvisedJob& job, const RecordedStep& recorded) const {
  if (!job.IsTrainer()) return 0;
  const auto scalar = std::ranges::find(recorded.operations, Role::kScalar,
                                        [](const WireOperation& one) { return one.role; });
  if (StageOf(job) == 0 || scalar == recorded.operations.end() || recorded.step_ns == 0)
    return kUpdateNsPerElement;
  const auto place = static_cast<size_t>(scalar - recorded.operations.begin());
  // Stages 1 and 2 gather units during the optimizer step, the last one at its end.
  size_t end = recorded.operations.size() - 1;
  while (end > place && recorded.operations[end].role != Role::kPostStepGather) --end;
  if (end == place) ++end;
  const bool last = end == recorded.operations.size();
  const int64_t next = last ? recorded.step_ns : recorded.issued_ns[end];
  SystemDemands demands(system_);
  const int nodes = (recorded.ranks + ranks_per_node_ - 1) / ranks_per_node_;
  DYNAMICCL_TRY(const TransferDemand waited,
                demands.Of(Collective::kAllReduce, scalar->Bytes(), kLeaveNcclAlone, recorded.ranks, nodes));
  const auto gap =
      static_cast<double>(next - recorded.issued_ns[place] - waited.latency_ns - waited.transfer_ns);
  return std::max(0.0, gap) * job.world.ShardRanks() / ElementsOf(job.model);
}

Result<TrainerCompute> StepPrediction::ComputeOf(const AdvisedJob& job, const RecordedStep& recorded,
                                                 int64_t step_ns) const {
  TrainerCompute compute;
  DYNAMICCL_TRY(compute.update_ns_per_element, UpdateNsPerElement(job, recorded));
  double least = 0, most = static_cast<double>(step_ns);
  for (int i = 0; i < kHalvings; ++i) {
    compute.pass_ns = (least + most) / 2;
    DYNAMICCL_TRY(const PredictedStep predicted, Of(job, compute));
    (predicted.step_ns > step_ns ? most : least) = compute.pass_ns;
  }
  compute.pass_ns = least;
  return compute;
}

}  // namespace dynamiccl
