// SPDX-License-Identifier: Apache-2.0
// Presets are resolved before validation, so that all checks see the final settings.
#include "zero_workloads/training_preset.h"

#include <algorithm>
#include <cstdlib>

#include "src/base/host_memory.h"
#include "zero_workloads/device/device.h"
#include "zero_workloads/estimate/model_preset.h"

namespace dynamiccl::zero {
namespace {

// Number of bytes in a GB, the unit of the messages.
constexpr double kGb = 1e9;

// The memory that a rank may take; 0 if the ranks share the host's memory without a limit.
int64_t LimitOfRank(const TrainingSettings& settings) {
  return settings.residual.memory_cap > 0 ? settings.residual.memory_cap : DeviceMemoryBytes();
}

// True if the optimizer's states are outside of the memory that CheckPresetFits looks at: in files, or in
// host memory where the device's memory is what is limited.
bool StatesAreElsewhere(const TrainingSettings& settings) {
  if (settings.offload_optimizer == "cpu") return LimitOfRank(settings) > 0;
  return settings.offload_optimizer != "none";
}

EstimateSettings EstimateOfRun(const TrainingSettings& settings, int world) {
  EstimateSettings run = EstimateSettingsOf(settings);
  const int64_t data_ranks = std::max(1, world / settings.tensor_parallel);
  run.ranks = settings.shard_group > 0 ? settings.shard_group : data_ranks;
  run.tensor_parallel = settings.tensor_parallel;
  run.batch = std::max<int64_t>(1, settings.batch / data_ranks);
  // With `auto`, the estimate assumes this choice, because `auto` falls back to it and it takes the least
  // memory.
  run.checkpoints = settings.residual.checkpoints().value_or(Checkpoints::kPartitionedCpu);
  if (StatesAreElsewhere(settings)) run.optimizer_bytes = 0;
  return run;
}

std::string EstimateCommandLine(const EstimateSettings& run) {
  return fmt::format(
      "dynamiccl zero estimate --layers {} --hidden {} --sequence {} --vocabulary {} --untied-head --dtype "
      "{} "
      "--ranks {} --tensor-parallel {} --batch {} --checkpoints {} --bucket-bytes {} --prefetch-units {} "
      "--unit-blocks {} --gradient-type {}{}{}",
      run.shape->layers, run.shape->hidden, run.shape->sequence, run.shape->vocabulary, run.dtype, run.ranks,
      run.tensor_parallel, run.batch, Name(run.checkpoints), static_cast<int64_t>(run.bucket_bytes),
      run.units_ahead, run.blocks_in_unit, run.gradient_type,
      run.accumulation_type == "none"
          ? ""
          : fmt::format(" --accumulation {} --accumulation-type {}", run.accumulation, run.accumulation_type),
      run.optimizer_bytes ? fmt::format(" --optimizer-bytes {}", *run.optimizer_bytes) : "");
}

}  // namespace

EstimateSettings EstimateSettingsOf(const TrainingSettings& settings) {
  EstimateSettings run;
  run.shape = TransformerShape{settings.model.layers, settings.model.hidden, settings.model.sequence,
                               settings.model.vocabulary, /*tied_head=*/false};
  run.dtype = settings.dtype;
  const bool one_bucket = settings.bucket_bytes == kOneBucketForAll;
  run.bucket_bytes = one_bucket ? 0 : static_cast<double>(settings.bucket_bytes);
  run.units_ahead = settings.units_ahead();
  run.blocks_in_unit = settings.blocks_in_unit();
  run.gradient_type = settings.reduce_type;
  if (settings.micro_steps == 1) return run;
  // The trainer's default is local sums in stages 0 and 1 and sharded sums in stages 2 and 3. The estimate's
  // "sharded" means the same.
  run.accumulation = settings.accumulation == "local" ? "local" : "sharded";
  run.accumulation_type = settings.accumulation_type;
  return run;
}

Status TakeModelPreset(const std::string& name, const std::function<bool(const char* option)>& given,
                       int world, TrainingSettings* settings) {
  if (name.empty()) return {};
  DYNAMICCL_TRY(const ModelPreset preset, FindModelPreset(name));
  GptShape& model = settings->model;
  if (!given("--layers")) model.layers = preset.layers;
  if (!given("--hidden")) model.hidden = preset.hidden;
  if (!given("--heads")) model.heads = preset.heads;
  if (!given("--sequence")) model.sequence = preset.sequence;
  if (!given("--tensor-parallel")) settings->tensor_parallel = preset.tensor_parallel;
  const int data_ranks = std::max(1, world / std::max(1, settings->tensor_parallel));
  if (!given("--batch")) settings->batch = preset.batch * data_ranks;
  return {};
}

Status CheckPresetFits(const std::string& name, const TrainingSettings& settings, int world, int ranks_here,
                       int64_t available_bytes) {
  if (name.empty()) return {};
  DYNAMICCL_CHECK_OK(Validate(settings));
  const EstimateSettings run = EstimateOfRun(settings, world);
  const double needed = EstimateOf(run)[static_cast<size_t>(settings.stage)].total();
  const int64_t of_device = LimitOfRank(settings);
  const bool shared = of_device == 0;
  const int64_t there = shared ? available_bytes : of_device;
  const int sharing = shared ? ranks_here : 1;
  if (there < 0 || needed * sharing <= static_cast<double>(there)) return {};
  return WithHint(
      MakeError(ErrorKind::kUnavailable,
                "--preset {} in stage {} needs about {:.3g} GB on each rank{}, and {} {:.3g} GB", name,
                settings.stage, needed / kGb,
                shared ? fmt::format(", {:.3g} GB for the {} rank(s) of this machine", needed * sharing / kGb,
                                     sharing)
                       : "",
                shared ? "it has available" : "a rank may take", static_cast<double>(there) / kGb),
      "what each stage would take, and what less asks for: " + EstimateCommandLine(run));
}

int64_t AvailableHostBytes() {
  const MemorySizes host = HostMemory();
  return host.total_bytes == 0 ? -1 : static_cast<int64_t>(host.free_bytes);
}

int RanksOnThisMachine(int world) {
  for (const char* variable :
       {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}) {
    const char* const text = std::getenv(variable);
    const int ranks = text == nullptr ? 0 : std::atoi(text);
    if (ranks > 0) return std::min(ranks, world);
  }
  return world;
}

}  // namespace dynamiccl::zero
