// SPDX-License-Identifier: Apache-2.0
// The parts that all stages of ZeRO share: flat parameters, the shard of optimizer states, the sums of
// gradients, and the optimizer step (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models", SC 2020, section 5). A stage decides when gradients are summed, which rank holds which
// parameters at which time, and how ranks get updated parameters.
//
// One step with m micro-steps, on every rank:
//
//   m times: model forward (calls the hooks); engine.Backward(loss)   fills and reduces buckets
//   engine.Step(mean loss, learning rate)                             norm, clipping, AdamW, publication
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>
#include <string>

#include "zero_workloads/models/engine_state.h"
#include "zero_workloads/models/unit.h"
#include "zero_workloads/offload/optimizer_offload.h"
#include "zero_workloads/optimizer/adamw.h"
#include "zero_workloads/optimizer/loss_scale.h"
#include "zero_workloads/parallel/partition.h"
#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/zero/bucket_reducer.h"
#include "zero_workloads/zero/flat_parameters.h"
#include "zero_workloads/zero/live_settings.h"
#include "zero_workloads/zero/whole_parameters.h"
#include "zero_workloads/zero_r/contiguous_pool.h"

namespace dynamiccl::zero {

// The settings of an engine; equal on all ranks except for the process groups' own ranks. The struct is large
// because the stages read most of it and its parts are checked together.
struct EngineSettings {
  // The ZeRO stage, 0 to 3.
  int stage = 0;
  // Bytes of a gradient bucket over all ranks (C_B).
  int64_t bucket_bytes = 4 << 20;
  // A unit's gradients are summed in one call, whatever their size.
  bool bucket_per_unit = false;
  // Gradients are summed during the backward pass, and updated parameters gathered during the next forward
  // pass.
  bool overlap = true;
  // Stage 3: the next unit is gathered while this one computes.
  bool prefetch = true;
  // For tests: memory that is freed, or not yet gathered, holds NaN, so that a read at the wrong time shows
  // in the result.
  bool poison = false;
  // Backward passes before each optimizer step.
  int64_t micro_steps = 1;
  // Gradients of several passes are added up before they are summed over the ranks, not after. Stages 0 and 1
  // always do so.
  bool accumulate_locally = false;
  // M_D: gradients that outlive their unit's backward pass lie in one pool.
  bool contiguous_gradients = false;
  uint64_t seed = 1;
  // The type of parameters, activations and gradients. Master weights are always fp32.
  at::ScalarType type = at::kFloat;
  // The type in which gradients are summed over ranks.
  at::ScalarType reduce_type = at::kFloat;
  // The type in which gradients are added up locally.
  at::ScalarType accumulation_type = at::kFloat;
  LossScaleSettings loss_scale;
  // The division of the model besides ZeRO. The tensor group is orthogonal to the engine's group.
  TensorSplit tensor;
  // All ranks, which compute loss and norm together. Needed with a tensor group or with replicas.
  ProcessGroup* world = nullptr;
  // Hybrid sharding, stages 1 to 3: the ranks that have the same place in their engine's group. The engine
  // partitions over its own group and is replicated over these ranks. Null: it is not replicated.
  ProcessGroup* replicas = nullptr;
  // Stage 3: neighbours in the engine's group that together hold a second copy of the parameters, from which
  // backward passes gather (ZeRO++'s hpZ). Null: backward passes gather over the engine's group.
  ProcessGroup* secondary = nullptr;
  at::Device device = at::kCPU;
  // The largest norm of the mean gradient; larger gradients are scaled down to it.
  double clip_norm = 1.0;
  AdamWSettings adamw;
  OptimizerOffload offload;
};

// The result of a step, equal on all ranks except for `overflow_in`.
struct StepOutcome {
  // Mean over the ranks and micro-steps.
  float loss = 0.0f;
  // L2 norm of the mean gradient, before clipping.
  float gradient_norm = 0.0f;
  // The scale with which this step was computed.
  double loss_scale = 1.0;
  // The gradients were not finite. No rank changed anything, and the loss scale may have fallen.
  bool skipped = false;
  // If skipped: the first parameter with such a gradient in this rank's part; empty if it has none.
  std::string overflow_in;
};

// One rank's engine. The training process owns it, and every rank makes the same calls in the same order on
// its training thread; parts of Backward may run on autograd's thread. For a given world size and one
// micro-step, losses and parameters are bit by bit equal for all stages and bucket sizes
// (docs/zero_trainer.md). A failed collective throws as ProcessGroup does.
//
// The class is large because the stages differ only in the few virtual functions below and share all state:
// separating the state from the step would only add forwarding.
class ZeroEngine : public UnitHooks {
 public:
  // Makes the engine of `settings.stage`, binds the parameters of the model's units and gives them their
  // first values. Model and group outlive the engine. A stage other than 0 to 3 throws std::logic_error.
  static std::unique_ptr<ZeroEngine> Create(std::vector<ModelUnit> model, ProcessGroup* group,
                                            const EngineSettings& settings);

  // Runs the backward pass of `loss`, a scalar, and collects the gradients. Call it micro_steps times before
  // each Step, each time after a forward pass.
  void Backward(const at::Tensor& loss);
  // Clips the gradients, updates the parameters and publishes them. `loss` is this rank's mean over the
  // micro-steps. If the loss or the norm is not finite, the step is skipped, provided that the loss is scaled
  // and the scale can still fall; otherwise it throws std::runtime_error on all ranks. Called before
  // micro_steps backward passes, it throws std::logic_error.
  StepOutcome Step(const at::Tensor& loss, double learning_rate);

  // Changes how the next steps communicate. Call it between steps, on all ranks before the same step.
  void SetLive(const LiveSettings& live);
  LiveSettings live() const { return {settings_.bucket_bytes, settings_.prefetch}; }

  // The traffic between the optimizer and its files; null if its states are not in files.
  const OffloadTraffic* offload_traffic() const { return TrafficOf(*optimizer_); }

  // The state on which the next step depends, for use between steps. Every rank has every state tensor, over
  // the elements that it holds.
  std::vector<StateTensor> StateTensors() const;
  std::vector<StateRange> StateRanges() const;
  StateValues Values() const;
  // Call it after all state tensors were overwritten. It restores `values` and brings the new parameters to
  // where the next forward pass needs them. All ranks call it.
  void StateReplaced(const StateValues& values);

  // The number of trainable elements in the whole model, without padding.
  int64_t ParameterCount() const;
  // SHA-256, in hexadecimal, over all master weights in the order of parameter names. It is equal for any
  // stage, world size, tensor-parallel degree and bucket size that computed the same values. All ranks call
  // it.
  std::string ParameterDigest();

  void BeforeForward(int) override {}
  void AfterForward(int, const at::Tensor&) override {}
  // Called before the unit's parameters are first used in a backward pass, if AfterForward got no output
  // whose gradient would announce that use.
  virtual void BeforeBackward(int) {}
  // True if the unit's full parameters are in memory and have not been freed since; only stage 3 returns
  // true.
  virtual bool IsInUse(int) const { return false; }
  const FlatParameters& parameters(int unit) const { return parameters_[static_cast<size_t>(unit)]; }
  int units() const { return partition_->units(); }

 protected:
  ZeroEngine(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings);

  // Called in the backward pass when autograd has computed all gradients of the unit: the stage then sums
  // them over ranks.
  virtual void GradientsReady(int unit) = 0;
  // Called in place of the function above in a pass whose gradients stay on this rank and are added to the
  // unit's sums.
  virtual void GradientsKept(int) {}
  // Called after each backward pass, except those whose gradients stay on this rank.
  virtual void AfterBackward() {}
  // Called after the optimizer step: brings the new master weights to where the next forward pass needs them.
  virtual void PublishParameters() = 0;

  // Passes the unit's gradients to the reducer and frees them, as soon as all later units were passed on.
  void ReduceGradients(int unit);
  // The own shard of the unit in a tensor over the arena: a view.
  at::Tensor Shard(const at::Tensor& arena, int unit) const;
  // Copies the master weights to the shard of parameters in the model's type, unless the optimizer step has
  // already done so. In fp32 both are one tensor if the optimizer's states are on the parameters' device.
  void RefreshParameterShard();

  // This rank's place among the ranks that hold the same shard. Values that are equal on all of them are
  // counted on the first.
  int replica_rank() const { return settings_.replicas == nullptr ? 0 : settings_.replicas->rank(); }
  // The number of ranks over which a step averages gradients.
  int64_t data_ranks() const {
    return int64_t{group_->world()} * (settings_.replicas == nullptr ? 1 : settings_.replicas->world());
  }
  bool in_last_micro_step() const { return passes_ + 1 == settings_.micro_steps; }
  bool holds_all_arenas() const { return settings_.stage == 0; }

  ProcessGroup* group_;
  EngineSettings settings_;
  // One entry a unit, at a stable address.
  std::deque<FlatParameters> parameters_;
  std::unique_ptr<Partition> partition_;
  std::unique_ptr<BucketReducer> reducer_;
  // Over the own arena; in stage 0 over all arenas, one after another.
  std::unique_ptr<AdamW> optimizer_;
  // The own arena's parameters in the model's type; not used in stage 0.
  at::Tensor parameter_shard_;

 private:
  void InitialiseUnit(int unit, const at::Tensor& master);
  // Creates the pool of contiguous gradients, if this stage keeps gradients beyond their unit's backward
  // pass.
  void ReserveGradients();
  // Fills `sliced_runs_` and `whole_runs_`; without a tensor group both stay empty.
  void FindSlicedAndWhole();
  // The unit's flat master weights on the host. All ranks of the group call it.
  at::Tensor GatherMaster(int unit);
  // Returns each tensor rank's flat master weights of the unit, on the host. All ranks call it.
  std::vector<at::Tensor> GatherSlices(int unit);
  // Called when the unit has its gradients of this pass: adds them up locally, or lets the stage sum them.
  void PassGradients(int unit);
  // Ends the pass for units of which not every parameter was used.
  void PassRemainingUnits();
  // Whether the stage reduces gradients in each pass and accumulates the sums.
  bool accumulates_shards() const { return settings_.micro_steps > 1 && !accumulates_locally(); }
  // Adds the sums of this pass to those of the step's earlier passes. After the last pass it sums over the
  // replicas.
  void AccumulateShard();
  bool accumulates_locally() const {
    return settings_.micro_steps > 1 && (settings_.stage < 2 || settings_.accumulate_locally);
  }
  // Loss and norm over all ranks, from this rank's loss and sums of gradients. A collective call.
  StepOutcome Outcome(const at::Tensor& loss, const at::Tensor& gradients);
  // The sums of gradients are larger than the mean gradient by this factor: ranks, micro-steps and loss
  // scale.
  double GradientFactor() const;
  // Name of the first parameter in this rank's part of `gradients` with an infinite or undefined element; may
  // be empty.
  std::string FirstNotFinite(const at::Tensor& gradients) const;

  // Whether the step in progress has already written the parameter shard.
  bool parameter_shard_written_ = false;
  // [2]: this rank's contributions to the loss and to the squared norm.
  at::Tensor ShareOfScalars(const at::Tensor& loss, const at::Tensor& own_gradients) const;

  // With a split sequence: runs of whole parameters in each arena that this rank holds.
  std::vector<std::vector<ArenaRun>> whole_runs_;
  // With a tensor group: runs of sliced parameters in this rank's own arena.
  std::vector<ArenaRun> sliced_runs_;
  LossScale loss_scale_;
  // By unit: whether it has its gradients of this pass.
  std::vector<bool> passed_;
  // By unit: whether its gradients are ready but wait for later units.
  std::vector<bool> reducible_;
  // The unit that the reducer expects next.
  int next_to_reduce_ = 0;
  // Number of completed backward passes of this step.
  int64_t passes_ = 0;
  // Null: gradients are allocated in each pass.
  std::unique_ptr<ContiguousPool> gradient_pool_;
  // fp32, over the own arena: the sums of the step's passes so far. Not used with one micro-step, nor when
  // gradients are added up locally.
  at::Tensor accumulated_;
};

}  // namespace dynamiccl::zero
