// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's ZeRO stages 1 and 2. Neither issues ReduceScatter. A step is
// - AllReduce for each gradient bucket, or for each owner of a part of the bucket one Reduce to that owner
//   (stage 1: in the last micro-step only; stage 2: in each micro-step)
// - AllReduce of the overflow flag (half precision), AllReduce of the norm
// - one AllGather of the flat group of parameters
// Some settings of DeepSpeed change no call, so they are no settings here: contiguous_gradients,
// allgather_bucket_size (not read where all_gather_into_tensor exists), overlap_comm of stage 2, and clipping
// (the norm is always computed).
#include <algorithm>
#include <array>

#include "traces/generators/framework_generator.h"
#include "traces/generators/gradient_buckets.h"

namespace dynamiccl {
namespace {

constexpr std::array kStage2Settings = {
    GeneratorSetting{"dtype", SettingKind::kDataType, "bfloat16", "type of the model"},
    GeneratorSetting{"communication_dtype", SettingKind::kDataType, "",
                     "communication_data_type; empty: dtype"},
    GeneratorSetting{"reduce_bucket_size", SettingKind::kInteger, "500000000", "elements of a bucket"},
    GeneratorSetting{"accumulation_steps", SettingKind::kInteger, "1", "gradient_accumulation_steps"},
    GeneratorSetting{"use_multi_rank_bucket_allreduce", SettingKind::kFlag, "true",
                     "one AllReduce a bucket; false: one Reduce to each owner"},
};
constexpr std::array kStage1Settings = {
    kStage2Settings[0],
    kStage2Settings[1],
    kStage2Settings[2],
    kStage2Settings[3],
    kStage2Settings[4],
    GeneratorSetting{"overlap_comm", SettingKind::kFlag, "false",
                     "reduce from gradient hooks, in the reverse order, and not after the backward"},
};

// A parameter's place in the flat group, in elements.
struct FlatSlice {
  int64_t begin = 0;
  int64_t size = 0;
};

class Stages1And2 : public FrameworkGenerator {
 public:
  explicit Stages1And2(int stage) : stage_(stage) {}

  std::string_view name() const override { return stage_ == 1 ? "deepspeed1" : "deepspeed2"; }
  std::string_view sentence() const override {
    return stage_ == 1 ? "DeepSpeed ZeRO stage 1" : "DeepSpeed ZeRO stage 2";
  }
  std::string_view source() const override {
    return "DeepSpeed 0.19.8: deepspeed/runtime/zero/stage_1_and_2.py";
  }
  std::span<const GeneratorSetting> settings() const override {
    return stage_ == 1 ? std::span<const GeneratorSetting>(kStage1Settings) : kStage2Settings;
  }
  ZeroStage Stage(const GeneratorInput&) const override { return static_cast<ZeroStage>(stage_); }
  void Step(const GeneratorInput& input, int step, OperationList& list) const override;

 private:
  // True if gradients are reduced as they arrive, which is in the reverse order of registration.
  bool ReducesFromHooks(const GeneratorInput& input) const {
    return stage_ == 2 || input.settings.Flag("overlap_comm");
  }
  void ReduceGradients(const GeneratorInput& input, OperationList& list) const;

  int stage_;
};

// nccl_start_alignment_factor is 2: every rank's part begins at a multiple of two elements.
int64_t FlatElements(const GeneratorInput& input) {
  return RoundUp(input.model.Elements(), 2 * int64_t{input.world.data});
}

// The parameters' places, in the order in which their gradients are reduced.
std::vector<FlatSlice> InOrderOfArrival(const ModelShape& model, bool reverse) {
  std::vector<FlatSlice> slices;
  int64_t begin = 0;
  for (const ParameterShape& parameter : model.parameters) {
    slices.push_back({begin, parameter.Elements()});
    begin += slices.back().size;
  }
  if (reverse) std::reverse(slices.begin(), slices.end());
  return slices;
}

// Issues one Reduce for each sequence of consecutive elements in the bucket that belong to the same rank.
void ReduceToOwners(const Bucket& bucket, std::span<const FlatSlice> slices, const GeneratorInput& input,
                    OperationList& list) {
  const int64_t part = FlatElements(input) / input.world.data;
  std::vector<std::pair<int64_t, int64_t>> runs;  // owner, number of elements
  for (const size_t position : bucket) {
    const int64_t end = slices[position].begin + slices[position].size;
    for (int64_t at = slices[position].begin; at < end;) {
      const int64_t owner = at / part, next = std::min(end, (owner + 1) * part);
      if (runs.empty() || runs.back().first != owner) runs.emplace_back(owner, 0);
      runs.back().second += next - at;
      at = next;
    }
  }
  const DataType type = input.settings.Type("communication_dtype");
  for (const auto& [owner, elements] : runs)
    list.Reduce(elements, type, ReduceOp::kSum, static_cast<int>(owner), Role::kGradientReduce);
}

void Stages1And2::ReduceGradients(const GeneratorInput& input, OperationList& list) const {
  const auto slices = InOrderOfArrival(input.model, ReducesFromHooks(input));
  std::vector<int64_t> sizes;
  for (const FlatSlice& slice : slices) sizes.push_back(slice.size);
  for (const Bucket& bucket : BucketsWithin(sizes, input.settings.Integer("reduce_bucket_size"))) {
    if (input.settings.Flag("use_multi_rank_bucket_allreduce")) {
      list.AllReduce(SumOf(bucket, sizes), input.settings.Type("communication_dtype"), ReduceOp::kSum,
                     Role::kGradientReduce);
    } else {
      ReduceToOwners(bucket, slices, input, list);
    }
  }
}

void Stages1And2::Step(const GeneratorInput& input, int, OperationList& list) const {
  const DataType type = input.settings.Type("dtype");
  list.SetPhase(Phase::kBackward);
  // Stage 2 does not keep whole gradients from one micro-step to the next, so each micro-step reduces.
  const int64_t reductions = stage_ == 1 ? 1 : input.settings.Integer("accumulation_steps");
  for (int64_t i = 0; i < reductions; ++i) ReduceGradients(input, list);
  list.SetPhase(Phase::kOptimizer);
  if (type != DataType::kFloat32) list.AllReduce(1, DataType::kUint8, ReduceOp::kMax, Role::kScalar);
  list.AllReduce(1, DataType::kFloat32, ReduceOp::kSum, Role::kScalar);
  list.AllGather(FlatElements(input), type, Role::kPostStepGather);
}

}  // namespace

const FrameworkGenerator& DeepSpeedStage1Generator() {
  static const Stages1And2 generator(1);
  return generator;
}

const FrameworkGenerator& DeepSpeedStage2Generator() {
  static const Stages1And2 generator(2);
  return generator;
}

}  // namespace dynamiccl
