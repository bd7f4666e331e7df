// SPDX-License-Identifier: Apache-2.0
// Builds a Megatron-LM step for a run of the paper, simulates it, and adds up its memory.
#include "studies/zero_paper/zero_paper_step.h"

#include <algorithm>

#include "src/simulator/event_simulation.h"
#include "src/simulator/transfer_demand.h"
#include "tools/simulate/step_program.h"
#include "tools/simulate/step_summary.h"
#include "traces/generators/framework_generator.h"
#include "zero_workloads/estimate/model_states.h"

namespace dynamiccl {
namespace {

// Usable share of a GPU's memory. Fitted once to three statements of the paper: with C4 a model of 140B
// trains and one of 150B does not (Figure 6), and with C5 one of 170B does (Figure 8).
constexpr double kUsable = 0.85;
// Megatron-LM pads GPT-2's 50257 to a multiple of 128 times the model-parallel ranks, here 16.
constexpr int64_t kVocabulary = 51200;
// Bytes that a step of mixed-precision Adam moves for a parameter. The gradient is read. Weight, momentum and
// variance are read and written. The parameter is written.
constexpr double kOptimizerBytes = 2 + 2 * 12 + 2;

using zero::Checkpoints;

int64_t BlockTokens(const zero::PaperRun& run) {
  return run.batch * run.shape().sequence;
}

// Activations of one block, by the equation in the header.
double BlockActivations(const zero::PaperRun& run) {
  const auto t = static_cast<double>(run.tensor_parallel), h = static_cast<double>(run.hidden);
  const double scores = 5.0 * run.heads * static_cast<double>(run.shape().sequence) / h;
  return static_cast<double>(BlockTokens(run)) * h * (10 + (24 + scores) / t);
}

bool Has(const zero::PaperConfig* config, Checkpoints checkpoints) {
  return config != nullptr && config->checkpoints == checkpoints;
}

SettingTexts SettingsOf(const zero::PaperRun& run, const zero::PaperConfig* config) {
  const bool partitioned =
      Has(config, Checkpoints::kPartitioned) || Has(config, Checkpoints::kPartitionedCpu);
  // Stage 1 reduces all gradients after the backward pass. Stage 2 and the baselines reduce during it.
  const bool beside = config == nullptr || config->stage == 2;
  SettingTexts texts{{"dtype", "float16"},
                     {"gradient_dtype", "float16"},
                     {"recompute", "full"},
                     {"micro_batch", std::to_string(run.batch)},
                     {"use_distributed_optimizer", config == nullptr ? "false" : "true"},
                     {"overlap_grad_reduce", beside ? "true" : "false"}};
  if (partitioned && run.tensor_parallel > 1) texts["distribute_saved_activations"] = "true";
  return texts;
}

// Nanoseconds of one direction of P_a+cpu. Every rank's part of the checkpoints goes to the host and comes
// back, on the stream that computes.
double HostCopiesNs(const zero::PaperRun& run, const zero::PaperConfig* config,
                    const Accelerator& accelerator) {
  if (!Has(config, Checkpoints::kPartitionedCpu)) return 0;
  const double checkpoints =
      zero::ActivationsOf(run.shape(), run.batch, run.tensor_parallel, 2, Checkpoints::kPartitioned).kept;
  return checkpoints / accelerator.host_gbps;
}

StepCompute ComputeOf(const zero::PaperRun& run, const zero::PaperConfig* config,
                      const Accelerator& accelerator) {
  const BlockWork work{run.batch, run.shape().sequence, run.hidden, run.heads, run.tensor_parallel};
  const double copies = HostCopiesNs(run, config, accelerator);
  const double forward = run.layers * ForwardNs(accelerator, work);
  const double share = config == nullptr ? 1 : run.data_parallel();
  const double updated = zero::ParametersOf(run.shape()) / run.tensor_parallel / share;
  return {.forward_ns = forward + copies,
          .backward_ns = 3 * forward + copies,
          .optimizer_ns = kOptimizerBytes * updated / accelerator.memory_gbps};
}

// Makes two steps, of which the second is used, because the first shows what frameworks do only once.
Result<GeneratedRun> StepOf(const zero::PaperRun& run, const zero::PaperConfig* config) {
  DYNAMICCL_TRY(const ModelShape model,
                ParseModel(fmt::format("gpt:layers={},hidden={},vocabulary={},sequence={},tied_head=true",
                                       run.layers, run.hidden, kVocabulary, run.shape().sequence)));
  return GenerateRun("megatron", model, {run.data_parallel(), run.tensor_parallel, 0},
                     SettingsOf(run, config), 2);
}

Result<RankTiming> Timed(const GeneratedRun& generated, const StepCompute& compute,
                         const DescribedSystem& described) {
  const System system = SystemOf(described);
  SystemDemands demands(system);
  SimulatedJob job;
  job.n_ranks = generated.world.Ranks();
  job.ranks_per_node = described.ranks_per_node;
  job.port_gbps = PortGbps(system);
  job.network_gbps = described.network_gbps;
  job.layouts = LayoutsOf(generated.world);
  DYNAMICCL_TRY(
      RankProgram program,
      ProgramOf(generated.steps.back(), {generated.world, described.ranks_per_node, {}}, compute, demands));
  job.programs.push_back(std::move(program));
  DYNAMICCL_TRY(SimulationResult result, Simulate(job));
  return std::move(result.observed[0]);
}

}  // namespace

double UsableMemory(const Accelerator& accelerator) {
  return kUsable * accelerator.memory_bytes;
}

double PaperMemory(const zero::PaperRun& run, const zero::PaperConfig* config) {
  const double parameters = zero::ParametersOf(run.shape()) / run.tensor_parallel;
  const int stage = config == nullptr ? 0 : config->stage;
  const double states =
      zero::StatesOf(parameters, zero::kMixedPrecisionAdam, stage, run.data_parallel()).total();
  const Checkpoints checkpoints = config == nullptr ? Checkpoints::kEveryBlock : config->checkpoints;
  const double kept = zero::ActivationsOf(run.shape(), run.batch, run.tensor_parallel, 2, checkpoints).kept;
  return states + kept + BlockActivations(run) + (config == nullptr ? zero::FusedBuffer(parameters) : 0);
}

double LargestModel(zero::PaperRun run, const zero::PaperConfig* config, const Accelerator& accelerator) {
  run.layers = 0;
  double largest = 0;
  while (true) {
    ++run.layers;
    if (PaperMemory(run, config) > UsableMemory(accelerator)) return largest;
    largest = zero::ParametersOf(run.shape());
  }
}

Result<PaperStep> SimulatePaperRun(const zero::PaperRun& run, const zero::PaperConfig* config,
                                   const DescribedSystem& described, const Accelerator& accelerator) {
  DYNAMICCL_TRY(const GeneratedRun generated, StepOf(run, config));
  DYNAMICCL_TRY(const RankTiming timing, Timed(generated, ComputeOf(run, config, accelerator), described));
  PaperStep step{.step_ns = timing.finished_ns, .compute_ns = timing.compute_ns};
  const auto& operations = generated.steps.back();
  for (size_t i = 0; i < operations.size(); ++i) {
    const bool tensor = operations[i].axis == Axis::kTensor;
    (tensor ? step.exposed_tensor_ns : step.exposed_data_ns) += timing.collectives[i].stalled_ns;
  }
  const BlockWork work{run.batch, run.shape().sequence, run.hidden, run.heads, run.tensor_parallel};
  step.tflops = 4 * run.layers * ForwardFlops(work) / static_cast<double>(step.step_ns) * 1e-3;
  step.memory_bytes = PaperMemory(run, config);
  step.fits = step.memory_bytes <= UsableMemory(accelerator);
  return step;
}

}  // namespace dynamiccl
