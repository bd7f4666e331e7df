// SPDX-License-Identifier: Apache-2.0
// The parts of a step that all stages share. Gradients are kept as sums: Backward leaves in the reducer the
// sum over ranks of the scaled gradients, and Step divides once by ranks * micro-steps * loss scale, together
// with clipping. For the norm, each rank uses the gradients of its own shards, so every stage adds up the
// same numbers in the same order.
#include "zero_workloads/zero/zero_engine.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <map>

#include "src/base/sha256.h"
#include "zero_workloads/memory/memory_counters.h"
#include "zero_workloads/zero/replicated_stages.h"
#include "zero_workloads/zero/stage3.h"

namespace dynamiccl::zero {
namespace {

// Added to the norm before the division, as torch's clip_grad_norm_ does.
constexpr double kClipEpsilon = 1e-6;

std::span<const std::byte> Bytes(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), static_cast<size_t>(tensor.nbytes())};
}

ReduceKind ReduceKindOf(const EngineSettings& settings) {
  if (settings.stage == 0) return ReduceKind::kAllReduce;
  return settings.all_reduce_gradients ? ReduceKind::kAllReduceKeepOwn : ReduceKind::kReduceScatter;
}

}  // namespace

std::unique_ptr<ZeroEngine> ZeroEngine::Create(std::vector<ModelUnit> model, ProcessGroup* group,
                                               const EngineSettings& settings) {
  switch (settings.stage) {
    case 0:
      return std::make_unique<Stage0>(std::move(model), group, settings);
    case 1:
      return std::make_unique<Stage1>(std::move(model), group, settings);
    case 2:
      return std::make_unique<Stage2>(std::move(model), group, settings);
    case 3:
      return std::make_unique<Stage3>(std::move(model), group, settings);
    default:
      throw std::logic_error("ZeRO has stages 0 to 3");
  }
}

ZeroEngine::ZeroEngine(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings)
    : group_(group), settings_(settings), loss_scale_(settings.loss_scale) {
  std::vector<int64_t> unit_elements;
  for (ModelUnit& unit : model) {
    parameters_.emplace_back(std::move(unit));
    unit_elements.push_back(parameters_.back().elements());
  }
  partition_ = std::make_unique<Partition>(unit_elements, group->world(),
                                           settings.whole_units ? Ownership::kWhole : Ownership::kParts);
  const at::TensorOptions options = at::TensorOptions().dtype(settings.type).device(settings.device);
  reducer_ = std::make_unique<BucketReducer>(
      *partition_, group,
      BucketSettings{ReduceKindOf(settings), settings.bucket_bytes, settings.bucket_per_unit,
                     settings.overlap, settings.poison, accumulates_shards() ? nullptr : settings.replicas,
                     settings.bucket_memory},
      options.dtype(settings.reduce_type));
  const int64_t arenas = holds_all_arenas() ? group->world() : 1;
  passed_.resize(unit_elements.size());
  reducible_.resize(unit_elements.size());
  next_to_reduce_ = units() - 1;
  optimizer_ = MakeAdamW(arenas * partition_->arena_elements(group->rank()), settings.offload, settings.adamw,
                         settings.device);
  for (int unit = 0; unit < units(); ++unit) InitialiseUnit(unit, optimizer_->master());
  if (settings.contiguous_gradients) ReserveGradients();
  if (!holds_all_arenas()) RefreshParameterShard();
  FindSlicedAndWhole();
}

void ZeroEngine::SetLive(const LiveSettings& live) {
  settings_.bucket_bytes = live.bucket_bytes;
  settings_.units_ahead = live.units_ahead;
  reducer_->SetBucketBytes(live.bucket_bytes);
}

ZeroEngine::~ZeroEngine() {
  DrainCollectives();
}

void ZeroEngine::DrainCollectives() noexcept {
  for (ProcessGroup* group : {group_, settings_.replicas, settings_.secondary})
    if (group != nullptr) group->Drain();
}

void ZeroEngine::FindSlicedAndWhole() {
  if (settings_.tensor.group == nullptr) return;
  sliced_runs_ = ArenaRuns(parameters_, *partition_, group_->rank(), /*sliced=*/true);
  if (!settings_.tensor.splits_sequence()) return;
  for (int rank = 0; rank < group_->world(); ++rank) {
    if (!holds_all_arenas() && rank != group_->rank()) continue;
    whole_runs_.push_back(ArenaRuns(parameters_, *partition_, rank, /*sliced=*/false));
  }
}

// Fills the unit's part of the master weights with first values. In stages 0 to 2, which keep the unit's flat
// parameters between steps, fills these as well.
void ZeroEngine::InitialiseUnit(int unit, const at::Tensor& master) {
  FlatParameters& parameters = parameters_[static_cast<size_t>(unit)];
  parameters.ComputeFirstValues();
  const bool stays = settings_.stage < 3;
  {
    const CountAs category(stays ? MemoryCategory::kParameters : MemoryCategory::kGathered);
    parameters.Bind(partition_->flat_elements(unit),
                    at::TensorOptions().dtype(settings_.type).device(settings_.device));
  }
  parameters.OnGradientsReady([this, unit] { PassGradients(unit); });
  for (int64_t rank = 0; rank < group_->world(); ++rank) {
    const bool own = rank == group_->rank();
    if (!stays && !own) continue;
    const auto [begin, elements, arena_offset] = partition_->shard(unit, rank);
    const at::Tensor values = parameters.InitialValues(settings_.seed, begin, begin + elements);
    parameters.flat().narrow(0, begin, elements).copy_(values);
    if (!own && !holds_all_arenas()) continue;
    const int64_t arena = holds_all_arenas() ? rank * partition_->arena_elements() : 0;
    master.narrow(0, arena + arena_offset, elements).copy_(values);
  }
  parameters.DropFirstValues();
  if (!stays) ResizeStorage(parameters.flat(), 0);
}

// Creates the pool for gradients that outlive their unit's backward pass: gradients that are added up locally
// live from the first micro-step to the last, and stage 1 keeps all gradients until the backward pass is
// over. All other gradients are in a bucket before those of the next unit are computed, so they need no pool.
void ZeroEngine::ReserveGradients() {
  if (!accumulates_locally() && settings_.stage != 1) return;
  const at::ScalarType type = accumulates_locally() ? settings_.accumulation_type : settings_.type;
  std::vector<int64_t> elements;
  for (const FlatParameters& parameters : parameters_) elements.push_back(parameters.elements());
  const CountAs category(MemoryCategory::kGradients);
  gradient_pool_ = std::make_unique<ContiguousPool>(elements, [&](int64_t count) {
    return at::empty({count}, at::TensorOptions().dtype(type).device(settings_.device));
  });
  for (size_t unit = 0; unit < parameters_.size(); ++unit) {
    if (accumulates_locally()) {
      parameters_[unit].SumGradientsIn(gradient_pool_->slot(unit));
    } else {
      parameters_[unit].KeepGradientsIn(gradient_pool_->slot(unit));
    }
  }
}

at::Tensor ZeroEngine::Shard(const at::Tensor& arena, int unit) const {
  const dynamiccl::zero::Shard own = partition_->shard(unit, group_->rank());
  return arena.narrow(0, own.arena_offset, own.elements);
}

PendingCollective ZeroEngine::GatherShards(int unit, const at::Tensor& shard, const at::Tensor& flat,
                                           const CallLabel& label) {
  if (!partition_->owns_whole_units()) return group_->AllGather(shard, flat, label);
  return group_->Broadcast(shard, flat, partition_->owner(unit), label);
}

void ZeroEngine::RefreshParameterShard() {
  if (std::exchange(parameter_shard_written_, false)) return;
  const at::Tensor& master = optimizer_->master();
  const bool same = settings_.type == at::kFloat && settings_.offload.place == OptimizerOffload::Place::kNone;
  if (same) {
    parameter_shard_ = master;
    return;
  }
  if (!parameter_shard_.defined()) {
    const CountAs category(MemoryCategory::kParameters);
    parameter_shard_ =
        at::empty(master.sizes(), at::TensorOptions().dtype(settings_.type).device(settings_.device));
  }
  parameter_shard_.copy_(master);
}

void ZeroEngine::ReduceGradients(int unit) {
  reducible_[static_cast<size_t>(unit)] = true;
  // Buckets hold the units from the last to the first, but a module that is not a chain may finish them in
  // another order.
  for (; next_to_reduce_ >= 0 && reducible_[static_cast<size_t>(next_to_reduce_)]; --next_to_reduce_) {
    const size_t next = static_cast<size_t>(next_to_reduce_);
    reducer_->Add(next_to_reduce_, parameters_[next]);
    parameters_[next].DropGradients();
    reducible_[next] = false;
  }
  if (next_to_reduce_ < 0) next_to_reduce_ = units() - 1;
}

void ZeroEngine::PassGradients(int unit) {
  passed_[static_cast<size_t>(unit)] = true;
  if (accumulates_locally()) {
    parameters_[static_cast<size_t>(unit)].AccumulateGradients(settings_.accumulation_type);
    if (!in_last_micro_step()) return GradientsKept(unit);
  }
  GradientsReady(unit);
}

void ZeroEngine::PassRemainingUnits() {
  for (int unit = units() - 1; unit >= 0; --unit) {
    if (!passed_[static_cast<size_t>(unit)]) PassGradients(unit);
    parameters_[static_cast<size_t>(unit)].StartPass();
  }
  passed_.assign(passed_.size(), false);
}

void ZeroEngine::Backward(const at::Tensor& loss) {
  (loss_scale_.enabled() ? loss.mul(loss_scale_.value()) : loss).backward();
  PassRemainingUnits();
  if (!accumulates_locally() || in_last_micro_step()) AfterBackward();
  reducer_->Finish();
  if (accumulates_shards()) AccumulateShard();
  ++passes_;
}

void ZeroEngine::AccumulateShard() {
  const at::Tensor& sums = reducer_->gradients();
  if (!accumulated_.defined()) {
    const CountAs category(MemoryCategory::kGradients);
    accumulated_ = at::empty(sums.sizes(), sums.options().dtype(at::kFloat));
  }
  if (passes_ == 0) {
    accumulated_.copy_(sums);
  } else {
    accumulated_.add_(sums);
  }
  ProcessGroup* const replicas = settings_.replicas;
  if (replicas == nullptr || !in_last_micro_step()) return;
  replicas->Await(
      replicas->AllReduce(accumulated_, {DYNAMICCL_PHASE_BACKWARD, DYNAMICCL_ROLE_GRADIENT_REDUCE}));
}

at::Tensor ZeroEngine::ShareOfScalars(const at::Tensor& loss, const at::Tensor& own_gradients) const {
  // The ranks of a tensor group have the same loss, so only the first of them contributes its loss. Replicas
  // have the same sums of gradients, so only the first replica contributes to the norm.
  const at::Tensor share = settings_.tensor.rank() == 0 ? loss.detach() : at::zeros_like(loss);
  if (replica_rank() > 0) return at::stack({share, at::zeros_like(share)});
  if (settings_.tensor.group == nullptr) return at::stack({share, own_gradients.square().sum()});
  return at::stack({share, SquaredNormShare(own_gradients, sliced_runs_, settings_.tensor)});
}

StepOutcome ZeroEngine::Outcome(const at::Tensor& loss, const at::Tensor& gradients) {
  const int64_t arena = partition_->arena_elements();
  // For the norm, a rank uses the gradients of its own shards only, even in stage 0, where it has all
  // gradients. Every stage thus adds up the same numbers in the same order.
  const at::Tensor own = holds_all_arenas() ? gradients.narrow(0, group_->rank() * arena, arena) : gradients;
  const at::Tensor scalars = ShareOfScalars(loss, own);
  const bool alone = settings_.tensor.group == nullptr && settings_.replicas == nullptr;
  ProcessGroup* const all_ranks = alone ? group_ : settings_.world;
  all_ranks->AwaitOnHost(all_ranks->AllReduce(scalars, {DYNAMICCL_PHASE_OPTIMIZER, DYNAMICCL_ROLE_SCALAR}));
  const at::Tensor sums = scalars.cpu();
  StepOutcome outcome;
  outcome.loss_scale = loss_scale_.value();
  outcome.loss = sums.const_data_ptr<float>()[0] / static_cast<float>(data_ranks());
  outcome.gradient_norm = std::sqrt(sums.const_data_ptr<float>()[1]) / static_cast<float>(GradientFactor());
  // Every rank has the same two sums, so either all ranks skip the step or none does.
  outcome.skipped = !std::isfinite(outcome.loss) || !std::isfinite(outcome.gradient_norm);
  if (outcome.skipped) outcome.overflow_in = FirstNotFinite(own);
  return outcome;
}

StepOutcome ZeroEngine::Step(const at::Tensor& loss, double learning_rate) {
  if (passes_ != settings_.micro_steps) throw std::logic_error("a step takes all its backward passes");
  passes_ = 0;
  if (gradient_pool_ != nullptr) gradient_pool_->CheckGuards();
  const at::Tensor gradients = accumulated_.defined() ? accumulated_ : reducer_->gradients().to(at::kFloat);
  if (!whole_runs_.empty()) SumWholeParameters(gradients, whole_runs_, settings_.tensor.group);
  const double factor = GradientFactor();
  const StepOutcome outcome = Outcome(loss, gradients);
  if (!loss_scale_.Update(outcome.skipped)) {
    const std::string where = outcome.overflow_in.empty() ? "" : ", first in " + outcome.overflow_in;
    const bool fixed = loss_scale_.enabled() && !loss_scale_.dynamic();
    throw std::runtime_error(
        fmt::format("loss {} or gradient norm {} is not finite{}, at loss scale {}; {}", outcome.loss,
                    outcome.gradient_norm, where, outcome.loss_scale,
                    fixed ? "give --loss-scale dynamic or a lower one" : "lower --learning-rate"));
  }
  if (outcome.skipped) return outcome;
  gradients.mul_(std::min(1.0, settings_.clip_norm / (outcome.gradient_norm + kClipEpsilon)) / factor);
  UpdateParameters(gradients, learning_rate);
  return outcome;
}

void ZeroEngine::UpdateParameters(const at::Tensor& gradients, double learning_rate) {
  if (settings_.rounds_master_weights) {
    const at::Tensor& master = optimizer_->master();
    master.copy_(master.to(settings_.type));
  }
  const bool copies = parameter_shard_.defined() && !parameter_shard_.is_same(optimizer_->master());
  optimizer_->Step(gradients, learning_rate, copies ? parameter_shard_ : at::Tensor(), GroupsOfStep());
  parameter_shard_written_ = copies;
  PublishParameters();
}

double ZeroEngine::GradientFactor() const {
  return static_cast<double>(data_ranks() * settings_.micro_steps) * loss_scale_.value();
}

std::string ZeroEngine::FirstNotFinite(const at::Tensor& gradients) const {
  for (int unit = 0; unit < units(); ++unit) {
    const FlatParameters& parameters = parameters_[static_cast<size_t>(unit)];
    const at::Tensor shard = Shard(gradients, unit);
    const int64_t begin = partition_->shard(unit, group_->rank()).begin;
    std::string name;
    parameters.ForEachParameter(begin, begin + shard.numel(), [&](size_t i, int64_t first, int64_t last) {
      const at::Tensor part = shard.narrow(0, parameters.offset(i) + first - begin, last - first);
      if (name.empty() && !at::isfinite(part).all().item<bool>()) name = parameters.unit().parameters[i].name;
    });
    if (!name.empty()) return name;
  }
  return {};
}

int64_t ZeroEngine::ParameterCount() const {
  int64_t count = 0;
  for (const FlatParameters& parameters : parameters_) {
    for (const ParameterSlot& slot : parameters.unit().parameters) count += slot.GlobalElements();
  }
  return count;
}

// Returns the unit's master weights on the host, as one flat tensor.
at::Tensor ZeroEngine::GatherMaster(int unit) {
  const at::Tensor& master = optimizer_->master();
  const auto [shard_elements, arena_offset] = partition_->unit(unit);
  if (holds_all_arenas()) {
    return master.view({group_->world(), -1}).narrow(1, arena_offset, shard_elements).flatten().cpu();
  }
  const at::Tensor shard = Shard(master, unit).to(settings_.device);
  const at::Tensor flat = at::empty({partition_->flat_elements(unit)}, shard.options());
  group_->AwaitOnHost(GatherShards(unit, shard, flat, {}));
  return flat.cpu();
}

std::vector<at::Tensor> ZeroEngine::GatherSlices(int unit) {
  const at::Tensor own = GatherMaster(unit);
  ProcessGroup* const group = settings_.tensor.group;
  if (group == nullptr) return {own};
  const at::Tensor all = at::empty({group->world(), own.numel()}, own.options().device(settings_.device));
  group->AwaitOnHost(group->AllGather(own.to(settings_.device), all, {}));
  return all.cpu().unbind();
}

std::string ZeroEngine::ParameterDigest() {
  std::map<std::string, std::string> digests;
  for (int unit = 0; unit < units(); ++unit) {
    const FlatParameters& parameters = parameters_[static_cast<size_t>(unit)];
    const std::vector<at::Tensor> flats = GatherSlices(unit);
    parameters.ForEachParameter(0, parameters.elements(), [&](size_t i, int64_t, int64_t end) {
      const ParameterSlot& slot = parameters.unit().parameters[i];
      std::vector<at::Tensor> slices;
      for (const at::Tensor& flat : flats) slices.push_back(flat.narrow(0, parameters.offset(i), end));
      digests[slot.name] = ToHex(Sha256Of(Bytes(slot.Assemble(slices))));
    });
  }
  std::string lines;
  for (const auto& [name, digest] : digests) lines += name + " " + digest + "\n";
  return HexDigestOf(lines);
}

}  // namespace dynamiccl::zero
