// SPDX-License-Identifier: Apache-2.0
// Writer emits what one rank does (compute, issue a call, wait for a call) in the order of the trainer's
// loop. trainer_program.h describes the rules.
#include "tools/advise/trainer_program.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "traces/generators/trainer_schedule.h"

namespace dynamiccl {
namespace {

// Rounds computing times to whole nanoseconds and adds each remainder to the next time.
class ComputeTimes {
 public:
  explicit ComputeTimes(const TrainerCompute& compute, double elements)
      : compute_(compute), elements_(elements) {}

  int64_t NsOf(const TrainerAction& action) {
    const double exact = ExactNsOf(action) + rounding_;
    const int64_t whole = std::llround(std::max(0.0, exact));
    rounding_ = exact - static_cast<double>(whole);
    return whole;
  }

 private:
  double ExactNsOf(const TrainerAction& action) const {
    switch (action.kind) {
      case TrainerActionKind::kForward:
        return compute_.pass_ns * kForwardShare * action.share;
      case TrainerActionKind::kBackward:
        return compute_.pass_ns * (1 - kForwardShare) * action.share;
      default:
        return compute_.update_ns_per_element * elements_ * action.share;
    }
  }

  const TrainerCompute compute_;
  const double elements_;
  double rounding_ = 0;
};

std::vector<Action> ActionsOf(const TrainerSchedule& schedule, const TrainerCompute& compute) {
  ComputeTimes times(compute, schedule.elements());
  std::vector<Action> actions;
  for (const TrainerAction& action : schedule.actions()) {
    if (action.kind == TrainerActionKind::kIssue) {
      actions.push_back({ActionKind::kIssue, static_cast<int64_t>(action.operation)});
    } else if (action.kind == TrainerActionKind::kWait) {
      actions.push_back({ActionKind::kWait, static_cast<int64_t>(action.operation)});
    } else if (const int64_t ns = times.NsOf(action); ns > 0) {
      actions.push_back({ActionKind::kCompute, ns});
    }
  }
  return actions;
}

// Number of nodes over which the communicator of rank 0 on this axis (data, shard or replicate) extends.
int NodesOn(const WorldShape& world, Axis axis, int ranks_per_node) {
  std::set<int> nodes;
  for (int rank = 0; rank < world.Ranks(); ++rank)
    if (world.GroupOn(axis, rank) == world.GroupOn(axis, 0)) nodes.insert(rank / ranks_per_node);
  return static_cast<int>(nodes.size());
}

}  // namespace

Result<TrainerProgram> ProgramOfTrainer(const AdvisedJob& job, const TrainerCompute& compute, int steps,
                                        int ranks_per_node, SystemDemands& demands) {
  DYNAMICCL_TRY(const SettingValues settings, SettingsOf(job));
  const GeneratorInput input{job.model, job.world, settings};
  OperationList list;
  TrainerSchedule schedule(input, list);
  for (int step = 0; step < steps; ++step) schedule.Step();
  schedule.WaitForAll();
  TrainerProgram result;
  result.program.actions = ActionsOf(schedule, compute);
  result.operations = list.Take();
  for (const WireOperation& operation : result.operations) {
    DYNAMICCL_TRY(
        const TransferDemand demand,
        demands.Of(operation.collective, operation.Bytes(), kLeaveNcclAlone,
                   job.world.RanksOn(operation.axis), NodesOn(job.world, operation.axis, ranks_per_node)));
    result.program.collectives.push_back({static_cast<size_t>(operation.axis), demand});
  }
  for (const TrainerAction& action : schedule.actions())
    if (action.kind == TrainerActionKind::kIssue)
      result.program.collectives[action.operation].after = action.after;
  return result;
}

}  // namespace dynamiccl
