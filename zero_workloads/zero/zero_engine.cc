// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/zero/zero_engine.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <map>

#include "src/base/sha256.h"
#include "zero_workloads/zero/replicated_stages.h"
#include "zero_workloads/zero/stage3.h"

namespace dynamiccl::zero {
namespace {

// Added to the norm before dividing, as torch's clip_grad_norm_ does.
constexpr double kClipEpsilon = 1e-6;

std::span<const std::byte> Bytes(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), static_cast<size_t>(tensor.nbytes())};
}

}  // namespace

std::unique_ptr<ZeroEngine> ZeroEngine::Create(Gpt* model, ProcessGroup* group,
                                               const EngineSettings& settings) {
  switch (settings.stage) {
    case 0:
      return std::make_unique<Stage0>(model, group, settings);
    case 1:
      return std::make_unique<Stage1>(model, group, settings);
    case 2:
      return std::make_unique<Stage2>(model, group, settings);
    case 3:
      return std::make_unique<Stage3>(model, group, settings);
    default:
      throw std::logic_error("ZeRO has stages 0 to 3");
  }
}

ZeroEngine::ZeroEngine(Gpt* model, ProcessGroup* group, const EngineSettings& settings)
    : group_(group), settings_(settings) {
  std::vector<int64_t> unit_elements;
  for (ModelUnit& unit : model->Units()) {
    parameters_.emplace_back(std::move(unit));
    unit_elements.push_back(parameters_.back().elements());
  }
  partition_ = std::make_unique<Partition>(unit_elements, group->world());
  const at::TensorOptions options = at::TensorOptions().dtype(settings.type).device(settings.device);
  const ReduceKind kind = settings.stage == 0 ? ReduceKind::kAllReduce : ReduceKind::kReduceScatter;
  reducer_ = std::make_unique<BucketReducer>(
      *partition_, group, BucketSettings{kind, settings.bucket_bytes, settings.overlap}, options);
  const int64_t arenas = holds_all_arenas() ? group->world() : 1;
  const at::Tensor master = at::zeros({arenas * partition_->arena_elements()}, options.dtype(at::kFloat));
  for (int unit = 0; unit < units(); ++unit) InitialiseUnit(unit, master);
  optimizer_ = std::make_unique<AdamW>(master, settings.adamw);
  if (!holds_all_arenas()) RefreshParameterShard();
}

// Fills the unit's part of the master weights, and its flat parameters where the stage keeps those between
// steps.
void ZeroEngine::InitialiseUnit(int unit, const at::Tensor& master) {
  FlatParameters& parameters = parameters_[static_cast<size_t>(unit)];
  const auto [shard_elements, arena_offset] = partition_->unit(unit);
  parameters.Bind(partition_->flat_elements(unit),
                  at::TensorOptions().dtype(settings_.type).device(settings_.device));
  parameters.OnGradientsReady([this, unit] { GradientsReady(unit); });
  for (int64_t rank = 0; rank < group_->world(); ++rank) {
    const bool own = rank == group_->rank();
    if (settings_.stage == 3 && !own) continue;
    const at::Tensor values =
        parameters.InitialValues(settings_.seed, rank * shard_elements, (rank + 1) * shard_elements);
    parameters.flat().narrow(0, rank * shard_elements, shard_elements).copy_(values);
    if (!own && !holds_all_arenas()) continue;
    const int64_t arena = holds_all_arenas() ? rank * partition_->arena_elements() : 0;
    master.narrow(0, arena + arena_offset, shard_elements).copy_(values);
  }
  if (settings_.stage == 3) ResizeStorage(parameters.flat(), 0);
}

at::Tensor ZeroEngine::Shard(const at::Tensor& arena, int unit) const {
  const auto [shard_elements, arena_offset] = partition_->unit(unit);
  return arena.narrow(0, arena_offset, shard_elements);
}

void ZeroEngine::RefreshParameterShard() {
  parameter_shard_ = optimizer_->master().to(settings_.type);
}

void ZeroEngine::ReduceGradients(int unit) {
  FlatParameters& parameters = parameters_[static_cast<size_t>(unit)];
  reducer_->Add(unit, parameters);
  parameters.DropGradients();
}

void ZeroEngine::Backward(const at::Tensor& loss) {
  loss.backward();
  AfterBackward();
  reducer_->Finish();
  if (settings_.micro_steps > 1 && settings_.stage >= 2) AccumulateShard();
  ++passes_;
}

void ZeroEngine::AccumulateShard() {
  const at::Tensor& sums = reducer_->gradients();
  if (!accumulated_.defined()) accumulated_ = at::empty(sums.sizes(), sums.options().dtype(at::kFloat));
  if (passes_ == 0) {
    accumulated_.copy_(sums);
  } else {
    accumulated_.add_(sums);
  }
}

StepOutcome ZeroEngine::Step(const at::Tensor& loss, double learning_rate) {
  if (passes_ != settings_.micro_steps) throw std::logic_error("a step takes all its backward passes");
  passes_ = 0;
  const at::Tensor gradients = accumulated_.defined() ? accumulated_ : reducer_->gradients().to(at::kFloat);
  const int64_t arena = partition_->arena_elements();
  // Every stage adds up the same numbers in the same order: those of the own arena.
  const at::Tensor own = holds_all_arenas() ? gradients.narrow(0, group_->rank() * arena, arena) : gradients;
  const at::Tensor scalars = at::stack({loss.detach(), own.square().sum()});
  group_->AwaitOnHost(group_->AllReduce(scalars, {DYNAMICCL_PHASE_OPTIMIZER, DYNAMICCL_ROLE_SCALAR}));
  const at::Tensor sums = scalars.cpu();
  const float world = static_cast<float>(group_->world());
  const int64_t passes = group_->world() * settings_.micro_steps;
  const StepOutcome outcome{sums.const_data_ptr<float>()[0] / world,
                            std::sqrt(sums.const_data_ptr<float>()[1]) / static_cast<float>(passes)};
  if (!std::isfinite(outcome.loss) || !std::isfinite(outcome.gradient_norm)) {
    throw std::runtime_error(fmt::format("loss {} or gradient norm {} is not finite; lower --learning-rate",
                                         outcome.loss, outcome.gradient_norm));
  }
  gradients.mul_(std::min(1.0, settings_.clip_norm / (outcome.gradient_norm + kClipEpsilon)) /
                 static_cast<double>(passes));
  optimizer_->Step(gradients, learning_rate);
  PublishParameters();
  return outcome;
}

int64_t ZeroEngine::ParameterCount() const {
  int64_t count = 0;
  for (const FlatParameters& parameters : parameters_) {
    for (const ParameterSlot& slot : parameters.unit().parameters) count += slot.Elements();
  }
  return count;
}

// The unit's flat master weights on the host.
at::Tensor ZeroEngine::GatherMaster(int unit) {
  const at::Tensor& master = optimizer_->master();
  const auto [shard_elements, arena_offset] = partition_->unit(unit);
  if (holds_all_arenas()) {
    return master.view({group_->world(), -1}).narrow(1, arena_offset, shard_elements).flatten().cpu();
  }
  const at::Tensor flat = at::empty({partition_->flat_elements(unit)}, master.options());
  group_->AwaitOnHost(group_->AllGather(Shard(master, unit), flat, {}));
  return flat.cpu();
}

std::string ZeroEngine::ParameterDigest() {
  std::map<std::string, std::string> digests;
  for (int unit = 0; unit < units(); ++unit) {
    const FlatParameters& parameters = parameters_[static_cast<size_t>(unit)];
    const at::Tensor flat = GatherMaster(unit);
    parameters.ForEachParameter(0, parameters.elements(), [&](size_t i, int64_t, int64_t end) {
      const Sha256Digest digest = Sha256Of(Bytes(flat.narrow(0, parameters.offset(i), end)));
      digests[parameters.unit().parameters[i].name] = ToHex(digest);
    });
  }
  std::string lines;
  for (const auto& [name, digest] : digests) lines += name + " " + digest + "\n";
  return ToHex(Sha256Of(std::as_bytes(std::span(lines))));
}

}  // namespace dynamiccl::zero
