// SPDX-License-Identifier: Apache-2.0
// What the ZeRO stages share: flat parameters, the shard of optimizer state, gradient sums and the optimizer
// step. A stage says when gradients are summed, who holds which parameters when, and how updated parameters
// reach their users.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>
#include <string>

#include "zero_workloads/models/unit.h"
#include "zero_workloads/offload/optimizer_offload.h"
#include "zero_workloads/optimizer/adamw.h"
#include "zero_workloads/optimizer/loss_scale.h"
#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/zero/bucket_reducer.h"
#include "zero_workloads/zero/engine_state.h"
#include "zero_workloads/zero/flat_parameters.h"
#include "zero_workloads/zero/partition.h"
#include "zero_workloads/zero/whole_parameters.h"
#include "zero_workloads/zero_r/contiguous_pool.h"

namespace dynamiccl::zero {

struct EngineSettings {
  int stage = 0;
  int64_t bucket_bytes = 4 << 20;
  bool bucket_per_unit = false;  // a unit's gradients are summed in one call, whatever their size
  bool overlap = true;   // gradient sums during the backward pass, gathers of updated parameters during the
                         // next forward pass
  bool prefetch = true;  // stage 3: gathers the next unit while this one computes
  // For tests: memory that is given up, or not yet gathered, holds NaN instead of being freed, so that
  // whoever reads it is found out.
  bool poison = false;
  int64_t micro_steps = 1;  // backward passes before each optimizer step
  // Gradients of several passes are added up before the ranks' sums, not after; stages 0 and 1 always do.
  bool accumulate_locally = false;
  bool contiguous_gradients =
      false;  // M_D: gradients that outlive their unit's backward pass lie in one pool
  uint64_t seed = 1;
  at::ScalarType type = at::kFloat;  // of parameters, activations and gradients; master weights are fp32
  at::ScalarType reduce_type = at::kFloat;        // of gradients while they are summed over ranks
  at::ScalarType accumulation_type = at::kFloat;  // of gradients added up locally
  LossScaleSettings loss_scale;
  TensorSplit tensor;  // how the model is divided beside ZeRO; its group is orthogonal to the engine's
  ProcessGroup* world = nullptr;  // with a tensor group or replicas: all ranks, which agree on loss and norm
  // Hybrid sharding, stages 1 to 3: the ranks that have the same place in their engine's group. The engine
  // divides over its group and is replicated over these; null: it is not.
  ProcessGroup* replicas = nullptr;
  // Stage 3: neighbours in the engine's group that hold a second copy of the parameters together, which
  // backward passes gather from (ZeRO++'s hpZ); null: they gather from the engine's group.
  ProcessGroup* secondary = nullptr;
  at::Device device = at::kCPU;
  double clip_norm = 1.0;
  AdamWSettings adamw;
  OptimizerOffload offload;
};

struct StepOutcome {
  float loss = 0.0f;           // mean over the ranks and micro-steps
  float gradient_norm = 0.0f;  // of the mean gradient, before clipping
  double loss_scale = 1.0;     // of this step
  // Gradients were not finite: nothing was changed, on no rank, and the loss scale may have fallen.
  bool skipped = false;
  std::string
      overflow_in;  // skipped: the first parameter with such a gradient in this rank's part, empty if none
};

class ZeroEngine : public UnitHooks {
 public:
  // Binds the parameters of the model's units and gives them their first values. Model and group outlive the
  // engine.
  static std::unique_ptr<ZeroEngine> Create(std::vector<ModelUnit> model, ProcessGroup* group,
                                            const EngineSettings& settings);

  // Called micro_steps times, each after a forward pass, before each Step.
  void Backward(const at::Tensor& loss);
  // Clips, updates and publishes the parameters. `loss` is this rank's, mean over the micro-steps. A norm
  // that is not finite skips the step where the loss is scaled and the scale can still fall, else it throws
  // std::runtime_error on all ranks, as does a loss that is not finite.
  StepOutcome Step(const at::Tensor& loss, double learning_rate);

  // Null where the optimizer's states are not in files.
  const OffloadTraffic* offload_traffic() const { return TrafficOf(*optimizer_); }

  // Between steps, what the next one depends on. Every rank has every state tensor, over its own places.
  std::vector<StateTensor> StateTensors() const;
  std::vector<StateRange> StateRanges() const;
  StateValues Values() const;
  // All state tensors were overwritten: takes the values as well, and brings the new parameters to where the
  // next forward pass needs them. All ranks call it.
  void StateReplaced(const StateValues& values);

  // Trainable numbers of the whole model, without padding.
  int64_t ParameterCount() const;
  // SHA-256 over all master weights, gathered, in the order of parameter names: equal for any stage, world
  // size, tensor degree, bucket. All ranks call it.
  std::string ParameterDigest();

  void BeforeForward(int) override {}
  void AfterForward(int, const at::Tensor&) override {}
  // Before the first use of the unit's parameters in a backward pass, where AfterForward had no output to see
  // it by.
  virtual void BeforeBackward(int) {}
  // The unit's parameters are there and were not given up since.
  virtual bool IsInUse(int) const { return false; }
  const FlatParameters& parameters(int unit) const { return parameters_[static_cast<size_t>(unit)]; }
  int units() const { return partition_->units(); }

 protected:
  ZeroEngine(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings);

  // Called in the backward pass, when autograd is through with the unit: its gradients are to be summed.
  virtual void GradientsReady(int unit) = 0;
  // The same for a pass whose gradients stay on this rank, added to the unit's sums.
  virtual void GradientsKept(int) {}
  // Called after the backward pass.
  virtual void AfterBackward() {}
  // Called after the optimizer step: brings the new master weights to where the next forward pass needs them.
  virtual void PublishParameters() = 0;

  // Hands the unit's gradients to the reducer and frees them, both once all later units' were handed over.
  void ReduceGradients(int unit);
  // The own shard of the unit in a tensor over the arena.
  at::Tensor Shard(const at::Tensor& arena, int unit) const;
  // Copies the master weights to the shard of parameters in the model's type, unless the step has done it; in
  // fp32 they are one tensor, if the optimizer's states are where parameters are.
  void RefreshParameterShard();

  // Among the ranks that hold the same shard; what they have alike counts on the first.
  int replica_rank() const { return settings_.replicas == nullptr ? 0 : settings_.replicas->rank(); }
  // Whose mean gradient a step takes.
  int64_t data_ranks() const {
    return int64_t{group_->world()} * (settings_.replicas == nullptr ? 1 : settings_.replicas->world());
  }
  bool in_last_micro_step() const { return passes_ + 1 == settings_.micro_steps; }
  bool holds_all_arenas() const { return settings_.stage == 0; }

  ProcessGroup* group_;
  EngineSettings settings_;
  std::deque<FlatParameters> parameters_;  // a unit each; addresses stay
  std::unique_ptr<Partition> partition_;
  std::unique_ptr<BucketReducer> reducer_;
  std::unique_ptr<AdamW> optimizer_;  // over the own arena, in stage 0 over all arenas, one after another
  at::Tensor parameter_shard_;        // of the own arena in the model's type; not used in stage 0

 private:
  void InitialiseUnit(int unit, const at::Tensor& master);
  void ReserveGradients();
  void FindSlicedAndWhole();
  at::Tensor GatherMaster(int unit);
  // Of a unit: what each tensor rank has of the flat master weights, on the host.
  std::vector<at::Tensor> GatherSlices(int unit);
  void PassGradients(int unit);
  // Ends the pass for units of which not every parameter was used.
  void PassRemainingUnits();
  // The stage reduces in each pass and adds the sums up afterwards.
  bool accumulates_shards() const { return settings_.micro_steps > 1 && !accumulates_locally(); }
  // Adds the sums of this pass to those of the step's earlier passes; after the last, sums over the replicas.
  void AccumulateShard();
  bool accumulates_locally() const {
    return settings_.micro_steps > 1 && (settings_.stage < 2 || settings_.accumulate_locally);
  }
  // Loss and norm over all ranks, from this rank's loss and the sums of gradients.
  StepOutcome Outcome(const at::Tensor& loss, const at::Tensor& gradients);
  // What the sums of gradients are larger by than the mean gradient.
  double GradientFactor() const;
  // Of this rank's part of `gradients`.
  std::string FirstNotFinite(const at::Tensor& gradients) const;

  bool parameter_shard_written_ = false;  // by the step that is under way
  // Loss and squared norm, what this rank adds to either.
  at::Tensor ShareOfScalars(const at::Tensor& loss, const at::Tensor& own_gradients) const;

  std::vector<std::vector<ArenaRun>> whole_runs_;  // with a split sequence: of the arenas that are held
  std::vector<ArenaRun> sliced_runs_;              // with a tensor group: of the own arena
  LossScale loss_scale_;
  std::vector<bool> passed_;     // by unit: has its gradients in this pass
  std::vector<bool> reducible_;  // by unit: waits for later units
  int next_to_reduce_ = 0;
  int64_t passes_ = 0;                             // backward passes of this step that are over
  std::unique_ptr<ContiguousPool> gradient_pool_;  // null: gradients are allocated in each pass
  at::Tensor
      accumulated_;  // fp32, over the own arena; not used with one micro-step, nor when added up locally
};

}  // namespace dynamiccl::zero
