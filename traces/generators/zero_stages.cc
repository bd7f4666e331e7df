// SPDX-License-Identifier: Apache-2.0
#include "traces/generators/zero_stages.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// As zero_workloads/zero/partition.h: a parameter starts on a cache line, a shard is a whole number of
// vectors.
constexpr int64_t kParameterAlignment = 32;
constexpr int64_t kShardAlignment = 128;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

int64_t Padded(std::initializer_list<int64_t> parameters) {
  int64_t sum = 0;
  for (const int64_t elements : parameters) sum += RoundUp(elements, kParameterAlignment);
  return sum;
}

class Generator {
 public:
  explicit Generator(const ZeroWorkload& workload);
  std::vector<IssuedCall> Run();

 private:
  void Step();
  void Forward();
  void Backward(bool reduce);
  void BackwardUnit(int unit, bool reduce);
  void OptimizerStep();
  // Gradients of the unit go to the buckets; the full ones are sent.
  void Reduce(int unit);
  void Gather(int unit, Role role, Phase phase);
  void Issue(Collective collective, uint64_t bytes, Role role, Phase phase);

  int64_t element_bytes() const { return static_cast<int64_t>(ElementBytes(workload_.data_type)); }

  const ZeroWorkload workload_;
  std::vector<int64_t> shard_;  // elements by unit; unit 0 is the root: embeddings, last norm and head
  int64_t arena_ = 0;           // sum of the shards
  int64_t capacity_ = 0;        // of a bucket, in elements of a shard
  int64_t position_ = 0;        // in the arena, of this pass
  std::vector<bool> gathered_;  // stage 3
  std::vector<IssuedCall> calls_;
};

Generator::Generator(const ZeroWorkload& workload) : workload_(workload) {
  const int64_t h = workload.hidden, v = workload.vocabulary;
  const int64_t root = Padded({v * h, workload.sequence * h, h, h, v * h, v});
  const int64_t block = Padded({h, h, 3 * h * h, 3 * h, h * h, h, h, h, 4 * h * h, 4 * h, 4 * h * h, h});
  for (int unit = 0; unit <= workload.layers; ++unit) {
    const int64_t elements = unit == 0 ? root : block;
    shard_.push_back(RoundUp((elements + workload.world - 1) / workload.world, kShardAlignment));
    arena_ += shard_.back();
  }
  const int64_t wanted = workload.bucket_bytes / (workload.world * element_bytes());
  capacity_ = std::min(RoundUp(std::max<int64_t>(wanted, 1), kShardAlignment), arena_);
  gathered_.assign(shard_.size(), false);
}

void Generator::Issue(Collective collective, uint64_t bytes, Role role, Phase phase) {
  IssuedCall issued;
  issued.call.call_number = calls_.size();
  issued.call.bytes = bytes;
  issued.call.collective = collective;
  issued.call.data_type = workload_.data_type;
  issued.call.n_ranks = workload_.world;
  issued.labelled_role = role;
  issued.labelled_phase = phase;
  issued.labelled_stage = static_cast<ZeroStage>(workload_.stage);
  calls_.push_back(issued);
}

void Generator::Gather(int unit, Role role, Phase phase) {
  const int64_t elements = shard_[static_cast<size_t>(unit)] * workload_.world;
  Issue(Collective::kAllGather, static_cast<uint64_t>(elements * element_bytes()), role, phase);
}

void Generator::Reduce(int unit) {
  const Collective collective = workload_.stage == 0 ? Collective::kAllReduce : Collective::kReduceScatter;
  const int64_t end = position_ + shard_[static_cast<size_t>(unit)];
  while (position_ < end) {
    const int64_t bucket_end = std::min((position_ / capacity_ + 1) * capacity_, arena_);
    if (bucket_end > end) {
      position_ = end;
      return;
    }
    const int64_t elements = (bucket_end - position_ / capacity_ * capacity_) * workload_.world;
    Issue(collective, static_cast<uint64_t>(elements * element_bytes()), Role::kGradientReduce,
          Phase::kBackward);
    position_ = bucket_end;
  }
}

void Generator::Forward() {
  if (workload_.stage != 3) return;
  for (int unit = 0; unit <= workload_.layers; ++unit) Gather(unit, Role::kParameterGather, Phase::kForward);
}

void Generator::BackwardUnit(int unit, bool reduce) {
  const auto gather = [&](int which) {
    if (workload_.stage != 3 || which < 1 || gathered_[static_cast<size_t>(which)]) return;
    gathered_[static_cast<size_t>(which)] = true;
    Gather(which, Role::kParameterGather, Phase::kBackward);
  };
  gather(unit);
  if (workload_.prefetch && workload_.gather_before_reduce) gather(unit - 1);
  if (reduce) Reduce(unit);
  if (workload_.prefetch && !workload_.gather_before_reduce) gather(unit - 1);
}

void Generator::Backward(bool reduce) {
  position_ = 0;
  gathered_.assign(shard_.size(), false);
  for (int unit = workload_.layers; unit >= 0; --unit) BackwardUnit(unit, reduce);
}

void Generator::OptimizerStep() {
  if (workload_.overflow_flag) {
    Issue(Collective::kAllReduce, 1, Role::kScalar, Phase::kOptimizer);
    calls_.back().call.data_type = DataType::kUint8;
    calls_.back().call.op = ReduceOp::kMax;
  }
  // Loss and squared norm travel together.
  Issue(Collective::kAllReduce, 2 * sizeof(float), Role::kScalar, Phase::kOptimizer);
  calls_.back().call.data_type = DataType::kFloat32;
  if (workload_.stage != 1 && workload_.stage != 2) return;
  for (int unit = 0; unit <= workload_.layers; ++unit) Gather(unit, Role::kPostStepGather, Phase::kOptimizer);
}

void Generator::Step() {
  for (int micro = 1; micro <= workload_.micro_steps; ++micro) {
    Forward();
    Backward(workload_.stage >= 2 || micro == workload_.micro_steps);
  }
  OptimizerStep();
}

std::vector<IssuedCall> Generator::Run() {
  if (workload_.broadcast_first) {
    for (const int64_t shard : shard_) {
      const auto bytes = static_cast<uint64_t>(shard * workload_.world * element_bytes());
      Issue(Collective::kBroadcast, bytes, Role::kOther, Phase::kOther);
    }
  }
  for (int step = 0; step < workload_.steps; ++step) Step();
  return std::move(calls_);
}

}  // namespace

std::vector<IssuedCall> GenerateZeroCalls(const ZeroWorkload& workload) {
  return Generator(workload).Run();
}

}  // namespace dynamiccl
