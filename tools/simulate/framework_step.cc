// SPDX-License-Identifier: Apache-2.0
// Lists the calls of a framework's step and computes how long its passes take.
#include "tools/simulate/framework_step.h"

#include "tools/simulate/step_program.h"

namespace dynamiccl {
namespace {

// Bytes that the optimizer moves for one parameter. It reads the gradient, reads and writes fp32 weight,
// momentum and variance, and writes the weight's 16-bit copy.
constexpr double kOptimizerBytes = 2 + 2 * 12 + 2;

// Nanoseconds of a forward pass. A block whose shape is not GPT-2's (12 hidden^2 parameters) is assumed to
// take time in proportion to its parameters.
Result<double> ForwardNsOf(const FrameworkStep& step) {
  if (step.forward_ms > 0) return step.forward_ms * 1e6;
  if (!step.model.transformer) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "nothing says how long {} computes", step.model.name),
        "give --forward-ms, or a transformer: --model gpt, bert or llama");
  }
  const auto& [layers, hidden, vocabulary, sequence, tied] = *step.model.transformer;
  const BlockWork work{step.sequences, sequence, hidden, 0, step.world.tensor};
  const auto square = static_cast<double>(hidden) * static_cast<double>(hidden);
  double elements = 0;
  for (const ParameterShape& parameter : step.model.parameters)
    if (parameter.dims.front() != vocabulary) elements += static_cast<double>(parameter.Elements());
  return ForwardNs(step.accelerator, work) * elements / (12 * square);
}

bool Recomputes(const FrameworkStep& step) {
  const auto setting = step.settings.find("recompute");
  return step.recomputes || (setting != step.settings.end() && setting->second == "full");
}

StepCompute ComputeOf(const FrameworkStep& step, double forward_ns) {
  const double parameters =
      static_cast<double>(step.model.Elements()) / step.world.tensor / step.world.ShardRanks();
  return {.forward_ns = forward_ns,
          .backward_ns = (Recomputes(step) ? 3 : 2) * forward_ns,
          .optimizer_ns = kOptimizerBytes * parameters / step.accelerator.memory_gbps};
}

}  // namespace

Result<FrameworkJob> JobOfFramework(const FrameworkStep& step, const System& system) {
  DYNAMICCL_TRY(const double forward_ns, ForwardNsOf(step));
  DYNAMICCL_TRY(const GeneratedRun run,
                GenerateRun(step.framework, step.model, step.world, step.settings, 2));
  SystemDemands demands(system);
  const std::vector<WireOperation>& operations = run.steps.back();
  FrameworkJob result;
  DYNAMICCL_TRY(RankProgram program, ProgramOf(operations, {step.world, system.ranks_per_node, step.config},
                                               ComputeOf(step, forward_ns), demands));
  for (const WireOperation& operation : operations)
    result.labels.push_back({operation.role, operation.collective, operation.Bytes()});
  SimulatedJob& job = result.job;
  job.n_ranks = step.world.Ranks();
  job.ranks_per_node = system.ranks_per_node;
  job.port_gbps = PortGbps(system);
  job.network_gbps = step.network_gbps > 0 ? step.network_gbps : NetworkGbps(system);
  job.layouts = LayoutsOf(step.world);
  job.programs.push_back(std::move(program));
  return result;
}

}  // namespace dynamiccl
