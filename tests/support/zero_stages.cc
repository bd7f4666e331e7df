// SPDX-License-Identifier: Apache-2.0
// A step consists of micro-steps (forward, backward) and the optimizer's step. Each adds its calls to one
// list.
#include "tests/support/zero_stages.h"

#include "traces/generators/zero_arena.h"

namespace dynamiccl {
namespace {

// Writes the calls of one job.
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
  // Puts the unit's gradients into buckets, and sends the buckets that are full.
  void Reduce(int unit);
  void Gather(int unit, Role role, Phase phase);
  void Issue(Collective collective, uint64_t bytes, Role role, Phase phase);

  int64_t element_bytes() const { return static_cast<int64_t>(ElementBytes(workload_.data_type)); }

  const ZeroWorkload workload_;
  const ZeroArena arena_;
  std::vector<bool> gathered_;  // by unit: was gathered in this backward pass of stage 3
  std::vector<IssuedCall> calls_;
};

// Unit 0 is the root: the embeddings, the last norm and the head.
ZeroArena ArenaOf(const ZeroWorkload& workload) {
  const int64_t h = workload.hidden, v = workload.vocabulary;
  const int64_t block[] = {h, h, 3 * h * h, 3 * h, h * h, h, h, h, 4 * h * h, 4 * h, 4 * h * h, h};
  const int64_t root[] = {v * h, workload.sequence * h, h, h, v * h, v};
  std::vector<int64_t> units(static_cast<size_t>(workload.layers) + 1, FlatElements(block));
  units[0] = FlatElements(root);
  return {units,
          {.ranks = workload.world,
           .bucket_bytes = workload.bucket_bytes,
           .element_bytes = static_cast<int64_t>(ElementBytes(workload.data_type))}};
}

Generator::Generator(const ZeroWorkload& workload)
    : workload_(workload), arena_(ArenaOf(workload)), gathered_(arena_.units()) {}

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
  const int64_t elements = arena_.whole(static_cast<size_t>(unit));
  Issue(Collective::kAllGather, static_cast<uint64_t>(elements * element_bytes()), role, phase);
}

void Generator::Reduce(int unit) {
  const Collective collective = workload_.stage == 0 ? Collective::kAllReduce : Collective::kReduceScatter;
  for (const BucketPart& bucket : arena_.BucketsOf(static_cast<size_t>(unit))) {
    if (bucket.full == 0) continue;
    Issue(collective, static_cast<uint64_t>(bucket.full * workload_.world * element_bytes()),
          Role::kGradientReduce, Phase::kBackward);
  }
}

void Generator::Forward() {
  if (workload_.stage != 3) return;
  for (int unit = 0; unit <= workload_.layers; ++unit) Gather(unit, Role::kParameterGather, Phase::kForward);
}

// Gathers this unit and the next one, and sends this unit's full buckets. The workload determines the order.
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
  gathered_.assign(arena_.units(), false);
  for (int unit = workload_.layers; unit >= 0; --unit) BackwardUnit(unit, reduce);
}

void Generator::OptimizerStep() {
  if (workload_.overflow_flag) {
    Issue(Collective::kAllReduce, 1, Role::kScalar, Phase::kOptimizer);
    calls_.back().call.data_type = DataType::kUint8;
    calls_.back().call.op = ReduceOp::kMax;
  }
  // The loss and the squared norm are in one call.
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
    for (size_t unit = 0; unit < arena_.units(); ++unit) {
      const auto bytes = static_cast<uint64_t>(arena_.whole(unit) * element_bytes());
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
