// SPDX-License-Identifier: Apache-2.0
// Lists the settings of each framework and the values to try. Also has the rules for which of them apply to a
// job, and the formulas for a rank's memory.
#include "tools/advise/possible_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "src/collective/size_class.h"
#include "tools/advise/trainer_options.h"
#include "zero_workloads/estimate/model_states.h"

namespace dynamiccl {
namespace {

// Remarks that the advice adds to a change of the number type in which gradients are summed.
constexpr const char* kSixteenBits = "gradients are summed in 16 bits: errors grow with the ranks";
constexpr const char* kSixteenBitsOnGpus =
    "gradients are summed in 16 bits: errors grow with the ranks; PyTorch refuses this hook without GPUs";
constexpr const char* kThirtyTwoBits = "gradients are summed in fp32: more exact";

// One setting of a framework and the values to try, separated by commas. In `how`, {} stands for the value.
struct SettingToTry {
  std::string_view framework, setting;
  std::string_view values;
  std::string_view how;
  std::string_view remark = {};
  // True if the framework refuses the value for tensors on CPUs.
  bool gpus_only = false;
};

// `how` is empty for the project's own trainer: its options are derived from the changed job (OptionsFor). A
// bucket of 17592186044416 bytes (2^44) stands for the trainer's option `--bucket-bytes all`, one bucket for
// all gradients.
constexpr SettingToTry kTable[] = {
    {kTrainer, "bucket_bytes", "65536,262144,1048576,4194304,16777216,67108864,17592186044416", ""},
    {kTrainer, "stage", "0,1,2,3", ""},
    {kTrainer, "prefetch", "true,false", ""},
    {kTrainer, "prefetch_units", "1,2,4", ""},
    {kTrainer, "overlap", "true,false", ""},
    {kTrainer, "unit", "block,parameter", ""},
    {kTrainer, "exchange", "collective", ""},
    {kTrainer, "accumulation", "local,sharded", "", "sums are rounded in another order"},
    {kTrainer, "reduce_type", "bfloat16,float32", ""},
    {"ddp", "bucket_bytes", "1048576,5242880,26214400,52428800,104857600,262144000",
     "DistributedDataParallel(bucket_cap_mb={})"},
    {"ddp", "dtype", "bfloat16",
     "model.register_comm_hook(None, "
     "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook)",
     kSixteenBitsOnGpus, true},
    {"ddp", "no_sync", "true", "with model.no_sync(): for all micro-steps but the last"},
    {"ddp", "find_unused_parameters", "false", "DistributedDataParallel(find_unused_parameters=False)",
     "every parameter must take part in every step"},
    {"fsdp2", "reduce_dtype", "bfloat16,float32",
     "fully_shard(mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.{}))"},
    {"fsdp2", "reshard_after_forward", "true,false", "fully_shard(reshard_after_forward={})"},
    {"fsdp2", "backward_prefetch", "true,false", "module.set_modules_to_backward_prefetch"},
    {"fsdp2", "gradient_sync", "last", "module.set_requires_gradient_sync(False) but for the last micro-step",
     "unsharded gradients stay between micro-steps"},
    {"deepspeed1", "reduce_bucket_size", "5000000,50000000,200000000,500000000",
     "\"zero_optimization\": {{\"reduce_bucket_size\": {}}}"},
    {"deepspeed1", "overlap_comm", "true", "\"zero_optimization\": {{\"overlap_comm\": {}}}"},
    {"deepspeed1", "communication_dtype", "bfloat16,float32", "\"communication_data_type\": \"{}\""},
    {"deepspeed2", "reduce_bucket_size", "5000000,50000000,200000000,500000000",
     "\"zero_optimization\": {{\"reduce_bucket_size\": {}}}"},
    {"deepspeed2", "communication_dtype", "bfloat16,float32", "\"communication_data_type\": \"{}\""},
    {"deepspeed3", "reduce_bucket_size", "5000000,50000000,200000000,500000000",
     "\"zero_optimization\": {{\"reduce_bucket_size\": {}}}"},
    {"deepspeed3", "prefetch_bucket_size", "0,5000000,50000000,500000000",
     "\"zero_optimization\": {{\"stage3_prefetch_bucket_size\": {}}}"},
    {"deepspeed3", "param_persistence_threshold", "0,100000,1000000,10000000",
     "\"zero_optimization\": {{\"stage3_param_persistence_threshold\": {}}}"},
    {"deepspeed3", "communication_dtype", "bfloat16,float32", "\"communication_data_type\": \"{}\""},
    {"megatron", "overlap_grad_reduce", "true", "--overlap-grad-reduce"},
    {"megatron", "overlap_param_gather", "true", "--overlap-param-gather"},
    {"megatron", "use_distributed_optimizer", "true,false", "--use-distributed-optimizer: {}"},
    {"megatron", "bucket_size", "10000000,40000000,200000000", "--ddp-bucket-size {}"},
    {"megatron", "gradient_dtype", "bfloat16,float32", "--grad-reduce-in-bf16 for bfloat16: {}"},
};

bool IsBytes(std::string_view setting) {
  return setting == "bucket_bytes";
}
bool IsType(std::string_view setting) {
  return setting == "reduce_type" || setting == "reduce_dtype" || setting == "communication_dtype" ||
         setting == "gradient_dtype";
}

// The value that the setting has in the job. A number type that is not set is the model's type.
std::string Current(const AdvisedJob& job, std::string_view setting) {
  const std::string text = SettingOf(job, setting);
  return text.empty() ? SettingOf(job, "dtype") : text;
}

// Formats the value of a setting for the advice. In a "ddp" job without labels, a bucket size of one byte
// means that each recorded call is a bucket of its own, so the text is "as recorded".
std::string Shown(const AdvisedJob& job, std::string_view setting, const std::string& value) {
  if (!IsBytes(setting)) return value;
  const uint64_t bytes = std::stoull(value);
  if (job.framework == "ddp" && bytes == 1) return "as recorded";
  return bytes >= uint64_t{1} << 40 ? "all" : FormatBytes(bytes);
}

// Converts the value into what the framework's own setting takes: MiB for DDP's bucket_cap_mb, "True" or
// "False" for FSDP's reshard_after_forward.
std::string HowValue(const SettingToTry& row, const std::string& value) {
  if (row.setting == "bucket_bytes") return std::to_string(std::stoull(value) >> 20);
  if (row.setting == "reshard_after_forward") return value == "true" ? "True" : "False";
  return value;
}

// True if the job would change if the setting `row` got this value.
bool MakesADifference(const AdvisedJob& job, const SettingToTry& row, const std::string& value) {
  const std::string current = Current(job, row.setting);
  if (current == value) return false;
  const bool trainer = job.IsTrainer();
  if (trainer && row.setting == "prefetch") return StageOf(job) == 3;
  if (trainer && row.setting == "prefetch_units")
    return StageOf(job) == 3 && SettingOf(job, "prefetch") == "true" &&
           std::stoull(value) < UnitsOf(job.model).size();
  if (trainer && row.setting == "unit")
    return job.model.transformer.has_value() && SettingOf(job, "unit_blocks") == "1";
  if (trainer && row.setting == "bucket_bytes") return SettingOf(job, "unit") != "parameter";
  if (trainer && row.setting == "accumulation")
    return StageOf(job) >= 2 && SettingOf(job, "micro_steps") != "1" &&
           !(value == "sharded" && current == "default");
  if (job.framework == "ddp" && row.setting == "bucket_bytes") return job.model.parameters.size() > 1;
  // No framework offers to reduce in more than 32 bits. To reduce in a narrower type than the model's own
  // makes no sense.
  if (IsType(row.setting)) return SettingOf(job, "dtype") != "float32" || value == "bfloat16";
  return true;
}

// True if the job accepts the value. The trainer reduces in the model's type or in fp32. The trainer has no
// stage 0 with hybrid sharding or with an `--exchange` of its own, and `--exchange all_reduce` is for stages
// 1 and 2.
bool Takes(const AdvisedJob& job, const SettingToTry& row, const std::string& value) {
  if (!job.IsTrainer()) return true;
  if (row.setting == "reduce_type") return value == "float32" || value == SettingOf(job, "dtype");
  if (row.setting == "stage" && value == "0")
    return !job.world.IsHybrid() && SettingOf(job, "exchange") == "collective";
  if (row.setting == "stage" && value == "3") return SettingOf(job, "exchange") != "all_reduce";
  return true;
}

std::string RemarkOf(const SettingToTry& row, const std::string& value) {
  if (!row.remark.empty()) return std::string(row.remark);
  if (!IsType(row.setting)) return {};
  return value == "float32" ? kThirtyTwoBits : kSixteenBits;
}

std::string HowOf(const AdvisedJob& base, const AdvisedJob& job, const SettingToTry& row,
                  const std::string& value) {
  if (base.IsTrainer()) return fmt::format("{}", fmt::join(OptionsFor(base, job), " "));
  return fmt::format(fmt::runtime(std::string(row.how)), HowValue(row, value));
}

// Adds a change for each value of the setting `row` that applies to the job.
void AddRow(const AdvisedJob& base, const SettingToTry& row, std::vector<PossibleChange>& changes) {
  std::istringstream values{std::string(row.values)};
  for (std::string value; std::getline(values, value, ',');) {
    if (!MakesADifference(base, row, value) || !Takes(base, row, value)) continue;
    PossibleChange change;
    change.job = base;
    change.job.settings[std::string(row.setting)] = value;
    if (row.framework == "ddp" && row.setting == "bucket_bytes")
      change.job.settings["first_bucket_bytes"] = value;
    change.what =
        fmt::format("{} {} -> {}", row.setting, Shown(base, row.setting, Current(base, row.setting)),
                    Shown(base, row.setting, value));
    change.how = HowOf(base, change.job, row, value);
    change.remark = RemarkOf(row, value);
    changes.push_back(std::move(change));
  }
}

// One form of hybrid sharding: model states are divided within groups of ranks and copied between the groups.
// `kind` is the value of the framework's setting "hybrid"; empty: the framework has no such setting. In
// `what` and `how`, {} stands for the number of ranks in a group, and in `how` {1} for the kind of device.
struct HybridWay {
  std::string_view framework, kind;  // `kind` is a value of "hybrid"; empty: the framework has none
  std::string_view what, how;
};
constexpr HybridWay kHybridWays[] = {
    {kTrainer, "shard", "states divided over {} ranks", ""},
    {kTrainer, "hpz", "backward gathers from a copy divided over {} ranks", ""},
    {"fsdp2", "", "states divided over {} ranks",
     "fully_shard(mesh=init_device_mesh(\"{1}\", (copies, {0})))"},
    {"deepspeed3", "mics", "states divided over {} ranks",
     "\"zero_optimization\": {{\"mics_shard_size\": {}}}"},
    {"deepspeed3", "hpz", "backward gathers from a copy divided over {} ranks",
     "\"zero_optimization\": {{\"zero_hpz_partition_size\": {}}}"},
};

// Adds a change to hybrid sharding over the ranks of a node, if there are several nodes with several ranks
// each.
void AddHybrid(const AdvisedJob& base, int ranks_per_node, TensorsOn device,
               std::vector<PossibleChange>& changes) {
  const int group = ranks_per_node / std::max(1, base.world.tensor);
  if (base.world.IsHybrid() || group < 2 || group >= base.world.data || base.world.data % group != 0) return;
  const int stage = base.IsTrainer() ? StageOf(base) : 3;
  for (const HybridWay& way : kHybridWays) {
    if (way.framework != base.framework || stage == 0 || (way.kind == "hpz" && stage != 3)) continue;
    PossibleChange change;
    change.job = base;
    change.job.world.shard = group;
    if (!way.kind.empty()) change.job.settings["hybrid"] = way.kind;
    change.what = fmt::format(fmt::runtime(std::string(way.what)), group);
    change.how = base.IsTrainer() ? fmt::format("{}", fmt::join(OptionsFor(base, change.job), " "))
                                  : fmt::format(fmt::runtime(std::string(way.how)), group,
                                                device == TensorsOn::kCpus ? "cpu" : "cuda");
    changes.push_back(std::move(change));
  }
}

// If the job uses hybrid sharding, adds the change back to sharding over all ranks.
void AddWholeSharding(const AdvisedJob& base, std::vector<PossibleChange>& changes) {
  if (!base.world.IsHybrid() || !base.IsTrainer()) return;
  PossibleChange change;
  change.job = base;
  change.job.world.shard = 0;
  change.job.settings["hybrid"] = "shard";
  change.what = fmt::format("states divided over all {} ranks", base.world.data);
  change.how = fmt::format("{}", fmt::join(OptionsFor(base, change.job), " "));
  changes.push_back(std::move(change));
}

// Bytes of one number in the type that `setting` names.
double WidthOf(const AdvisedJob& job, std::string_view setting) {
  return Current(job, setting) == "float32" ? 4 : 2;
}

// Number of units that are gathered while another one computes.
double UnitsAhead(const AdvisedJob& job) {
  if (SettingOf(job, "prefetch") == "false" || SettingOf(job, "backward_prefetch") == "false") return 0;
  return job.IsTrainer() ? std::stod(SettingOf(job, "prefetch_units")) : 1;
}

// Number of blocks that are gathered at once.
double BlocksInUnit(const AdvisedJob& job) {
  if (!job.IsTrainer()) return 1;
  return SettingOf(job, "unit") == "half_block" ? 0.5 : std::stod(SettingOf(job, "unit_blocks"));
}

// Bytes of the gathered parameters that a rank holds in ZeRO stage 3: the root unit, which stays gathered,
// the unit in use and, with prefetch, the next units.
double GatheredBytes(const AdvisedJob& job, double width) {
  double root = 0, largest = 0;
  const auto units = UnitsOf(job.model);
  for (size_t unit = 0; unit < units.size(); ++unit) {
    double elements = 0;
    for (const size_t index : units[unit])
      elements += static_cast<double>(job.model.parameters[index].Elements());
    if (unit == 0)
      root = elements;
    else
      largest = std::max(largest, elements);
  }
  const double blocks = (1 + UnitsAhead(job)) * BlocksInUnit(job);
  return (root + std::min(blocks, static_cast<double>(units.size() - 1)) * largest) * width;
}

}  // namespace

double MemoryOf(const AdvisedJob& job) {
  const auto elements = static_cast<double>(job.model.Elements());
  const double width = WidthOf(job, "dtype");
  const int stage = StageOf(job);
  const bool copies = SettingOf(job, "hybrid") == "hpz";
  const int ranks = copies ? job.world.data : job.world.ShardRanks();
  const zero::StateBytes bytes = width == 4 ? zero::kFp32Adam : zero::kMixedPrecisionAdam;
  // Even if FSDP2 keeps the gathered units between the forward and the backward pass, it still holds its
  // shards of them.
  const bool keeps_gathered = job.framework == "fsdp2" && SettingOf(job, "reshard_after_forward") == "false";
  double memory = zero::StatesOf(elements, bytes, keeps_gathered ? 3 : stage, ranks).total();
  if (copies) memory += elements * width / job.world.ShardRanks();
  if (keeps_gathered)
    memory += elements * width;
  else if (stage == 3)
    memory += GatheredBytes(job, width);
  if (job.IsTrainer()) {
    const double all = elements * WidthOf(job, "reduce_type");
    memory += std::min(2 * std::stod(SettingOf(job, "bucket_bytes")), all);
  }
  return memory;
}

std::vector<PossibleChange> PossibleChanges(const AdvisedJob& job, int ranks_per_node, TensorsOn device) {
  std::vector<PossibleChange> changes;
  for (const SettingToTry& row : kTable) {
    const bool refused = row.gpus_only && device == TensorsOn::kCpus;
    if (row.framework == job.framework && !refused) AddRow(job, row, changes);
  }
  AddHybrid(job, ranks_per_node, device, changes);
  AddWholeSharding(job, changes);
  const double before = MemoryOf(job);
  for (PossibleChange& change : changes) change.memory_bytes = MemoryOf(change.job) - before;
  return changes;
}

}  // namespace dynamiccl
