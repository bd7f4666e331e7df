// SPDX-License-Identifier: Apache-2.0
// The project's own trainer (zero_workloads, docs/zero_trainer.md): stages 0 to 3 with constant buckets,
// hybrid sharding, second copies for backward passes, and the exchange by owners of the ZeRO paper. Settings
// have the names of the trainer's options. A step of stage 3 is
// - forward: AllGather for each unit
// - backward: AllGather for each unit but the root, prefetch_units ahead; ReduceScatter for each full
//   bucket, with hybrid sharding then AllReduce of the bucket over the replicas
// - optimizer: AllReduce of loss and squared norm
// Stages 1 and 2 gather after the optimizer instead. Stage 0 sums buckets by AllReduce, and so do stages 1
// and 2 with exchange=all_reduce.
#include <array>

#include "traces/generators/framework_generator.h"
#include "traces/generators/trainer_schedule.h"

namespace dynamiccl {
namespace {

constexpr std::array kDynamicclZeroSettings = {
    GeneratorSetting{"stage", SettingKind::kChoice, "0", "ZeRO stage", 1, "0,1,2,3"},
    GeneratorSetting{"dtype", SettingKind::kDataType, "float32", "type of parameters and activations"},
    GeneratorSetting{"reduce_type", SettingKind::kDataType, "",
                     "type of gradients while ranks sum them; empty: dtype"},
    GeneratorSetting{"bucket_bytes", SettingKind::kInteger, "4194304",
                     "of a gradient bucket, over all ranks"},
    GeneratorSetting{"unit", SettingKind::kChoice, "block",
                     "what is gathered and, for parameter, summed at once; half_block (gpt): attention and "
                     "feed-forward network apart",
                     1, "block,half_block,parameter"},
    GeneratorSetting{"unit_blocks", SettingKind::kInteger, "1",
                     "with unit=block: how many neighbouring blocks are one unit", 1},
    GeneratorSetting{"exchange", SettingKind::kChoice, "collective",
                     "owner: one Reduce and one Broadcast for each rank's part; all_reduce: gradients by "
                     "AllReduce in stages 1 and 2; layer_owner: rank i mod N owns unit i whole",
                     1, "collective,owner,all_reduce,layer_owner"},
    GeneratorSetting{"micro_steps", SettingKind::kInteger, "1", "passes of a step"},
    GeneratorSetting{"accumulation", SettingKind::kChoice, "default",
                     "where micro-steps are added up; default: local in stages 0 and 1, sharded in 2 and 3",
                     1, "default,local,sharded"},
    GeneratorSetting{"overlap", SettingKind::kFlag, "true", "communicate while computing"},
    GeneratorSetting{"prefetch", SettingKind::kFlag, "true", "stage 3: gather the next unit early"},
    GeneratorSetting{"prefetch_units", SettingKind::kInteger, "1",
                     "stage 3 with prefetch: how many units are gathered early", 1},
    GeneratorSetting{
        "hybrid", SettingKind::kChoice, "shard",
        "what a shard group is for: shard divides over it only, hpz gathers in it in the backward", 1,
        "shard,hpz"},
};

class DynamicclZero : public FrameworkGenerator {
 public:
  std::string_view name() const override { return "dynamiccl-zero"; }
  std::string_view sentence() const override {
    return "this project's ZeRO trainer, with hybrid sharding and hpZ";
  }
  std::string_view source() const override { return "zero_workloads of this release"; }
  std::span<const GeneratorSetting> settings() const override { return kDynamicclZeroSettings; }
  ZeroStage Stage(const GeneratorInput& input) const override {
    return static_cast<ZeroStage>(input.settings.Choice("stage").front() - '0');
  }
  Status Check(const GeneratorInput& input) const override;
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;
};

// Refuses the settings that the trainer refuses.
Status DynamicclZero::Check(const GeneratorInput& input) const {
  DYNAMICCL_CHECK_OK(RefuseTensorParallel(input));
  const ZeroStage stage = Stage(input);
  const SettingValues& settings = input.settings;
  const bool hpz = settings.Choice("hybrid") == "hpz";
  const auto refuse = [](const char* what, const char* hint) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl-zero: {}", what), hint);
  };
  if (stage == ZeroStage::kStage0 && input.world.IsHybrid())
    return refuse("stage 0 divides nothing, so that it has no shard groups", "take stage=1, 2 or 3");
  if (stage == ZeroStage::kStage0 && settings.Choice("exchange").ends_with("owner"))
    return refuse("exchange=owner: in stage 0 every rank owns everything", "take stage=1, 2 or 3");
  if (settings.Choice("exchange") == "layer_owner" && input.world.IsHybrid() && !hpz)
    return refuse("exchange=layer_owner has no shard groups", "take exchange=owner");
  if ((stage == ZeroStage::kStage0 || stage == ZeroStage::kStage3) &&
      settings.Choice("exchange") == "all_reduce")
    return refuse("exchange=all_reduce is for stages 1 and 2", "take stage=1 or 2");
  if (settings.Choice("unit") != "block" && settings.Integer("unit_blocks") > 1)
    return refuse("unit_blocks is for unit=block", "leave out one of them");
  if (settings.Choice("unit") == "half_block" && !HasHalves(input.model))
    return refuse("unit=half_block is for a gpt, whose blocks have two halves", "take unit=block");
  if (stage < ZeroStage::kStage2 && settings.Choice("accumulation") == "sharded")
    return refuse("accumulation=sharded is for stages 2 and 3", "leave it out");
  if (hpz && (stage != ZeroStage::kStage3 || !input.world.IsHybrid()))
    return refuse("hybrid=hpz is for stage 3 and a --shard-group smaller than --data-parallel",
                  "set stage=3 and --shard-group");
  return {};
}

void DynamicclZero::Step(const GeneratorInput& input, int, OperationList& list) const {
  TrainerSchedule(input, list).Step();
}

}  // namespace

const FrameworkGenerator& DynamicclZeroGenerator() {
  static const DynamicclZero generator;
  return generator;
}

}  // namespace dynamiccl
