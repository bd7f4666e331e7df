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

// The settings of an engine. They are equal on all ranks except for the process groups, which differ from
// rank to rank. The struct is large because the stages read most of it and its parts are checked together.
struct EngineSettings {
  // The ZeRO stage, 0 to 3.
  int stage = 0;
  // Bytes of a gradient bucket over all ranks. The size does not grow with the model (the ZeRO paper's C_B).
  int64_t bucket_bytes = 4 << 20;
  // The memory of buckets and of the sums of gradients.
  BufferMemory bucket_memory = BufferMemory::kOrdinary;
  // If true, a unit's gradients are summed in one call, whatever their size.
  bool bucket_per_unit = false;
  // Stages 1 and 2: if true, buckets are summed by AllReduce, and a rank keeps the part for its own shards.
  // If false, they are summed by ReduceScatter.
  bool all_reduce_gradients = false;
  // If true, rank i mod N owns unit i whole: a unit's gradients are reduced to its owner, and the owner
  // broadcasts the unit's parameters. For stages 1 to 3, without replicas.
  bool whole_units = false;
  // If true, gradients are summed during the backward pass, and updated parameters are gathered during the
  // next forward pass.
  bool overlap = true;
  // The number of units that stage 3 gathers ahead while the present unit computes; 0 means none.
  int64_t units_ahead = 1;
  // For tests: memory that is freed, or not yet gathered, holds NaN, so that a read at the wrong time shows
  // in the result.
  bool poison = false;
  // Number of backward passes before each optimizer step.
  int64_t micro_steps = 1;
  // True if the gradients of several passes are added up on each rank before they are summed over the ranks.
  // False if they are added up afterwards. In stages 0 and 1 gradients are always added up before.
  bool accumulate_locally = false;
  // If true, gradients that outlive their unit's backward pass lie in one pool (the ZeRO paper's M_D).
  bool contiguous_gradients = false;
  uint64_t seed = 1;
  // The type of parameters, activations and gradients. Master weights are always fp32.
  at::ScalarType type = at::kFloat;
  // If true, each step begins from master weights that are rounded to `type`, as if there were none in fp32.
  // Not for an optimizer in files.
  bool rounds_master_weights = false;
  // The type in which gradients are summed over ranks.
  at::ScalarType reduce_type = at::kFloat;
  // The type in which gradients are added up locally.
  at::ScalarType accumulation_type = at::kFloat;
  LossScaleSettings loss_scale;
  // Tensor parallelism. Its group is independent of the engine's group, over which ZeRO partitions.
  TensorSplit tensor;
  // The group of all ranks, which compute loss and norm together. It is needed with a tensor group or
  // replicas.
  ProcessGroup* world = nullptr;
  // Hybrid sharding, stages 1 to 3: the ranks that have the same place in their engine's group. The engine
  // partitions over its own group and is replicated over these ranks. Null if it is not replicated.
  ProcessGroup* replicas = nullptr;
  // Stage 3: neighbours in the engine's group that together hold a second copy of the parameters, from which
  // backward passes gather (ZeRO++'s hpZ). If null, backward passes gather over the engine's group.
  ProcessGroup* secondary = nullptr;
  at::Device device = at::kCPU;
  // The largest norm of the mean gradient; larger gradients are scaled down to it.
  double clip_norm = 1.0;
  AdamWSettings adamw;
  OptimizerOffload offload;
};

// The result of a step, equal on all ranks except for `overflow_in`.
struct StepOutcome {
  // Mean of the losses over the ranks and micro-steps.
  float loss = 0.0f;
  // L2 norm of the mean gradient, before clipping.
  float gradient_norm = 0.0f;
  // The loss scale with which this step was computed.
  double loss_scale = 1.0;
  // True if the gradients were not finite. No rank has changed its parameters, and the loss scale may have
  // fallen.
  bool skipped = false;
  // If the step was skipped: the first parameter in this rank's part with a gradient that is not finite.
  // Empty if there is none.
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
  // Waits for collectives that are still in flight, such as the gathers that the last step began.
  ~ZeroEngine() override;

  // Runs the backward pass of `loss`, a scalar, and collects the gradients. Call it micro_steps times before
  // each Step, each time after a forward pass.
  void Backward(const at::Tensor& loss);
  // Clips the gradients, updates the parameters and publishes them. `loss` is this rank's mean over the
  // micro-steps. If the loss or the norm is not finite, the step is skipped, provided that the loss is scaled
  // and the scale can still fall; otherwise the function throws std::runtime_error on all ranks. Throws
  // std::logic_error if it is called before micro_steps backward passes.
  StepOutcome Step(const at::Tensor& loss, double learning_rate);

  // Waits for updated parameters that are still on their way to this rank after Step. Only a reader outside
  // of a forward pass needs it, since BeforeForward waits for each unit.
  virtual void AwaitParameters() {}

  // Changes how the next steps communicate. Call it between steps, on all ranks before the same step.
  void SetLive(const LiveSettings& live);
  LiveSettings live() const { return {settings_.bucket_bytes, settings_.units_ahead}; }

  // The traffic between the optimizer and its files; null if the optimizer's states are not in files.
  const OffloadTraffic* offload_traffic() const { return TrafficOf(*optimizer_); }

  // The tensors on which the next step depends, for use between steps. Every rank has each of these tensors,
  // for the elements that the rank holds.
  std::vector<StateTensor> StateTensors() const;
  std::vector<StateRange> StateRanges() const;
  StateValues Values() const;
  // Restores `values` and brings the new parameters to where the next forward pass needs them. Call it after
  // all state tensors were overwritten. All ranks call it.
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
  // Stage 3: true if the unit's full parameters are in memory. In the other stages they always are, and the
  // function returns false.
  virtual bool IsInUse(int) const { return false; }
  const FlatParameters& parameters(int unit) const { return parameters_[static_cast<size_t>(unit)]; }
  int units() const { return partition_->units(); }

 protected:
  ZeroEngine(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings);

  // Called in the backward pass when autograd has computed all gradients of the unit. The stage then sums the
  // gradients over ranks.
  virtual void GradientsReady(int unit) = 0;
  // Called in place of GradientsReady in a pass whose gradients stay on this rank and are added to the unit's
  // sums.
  virtual void GradientsKept(int) {}
  // Called after each backward pass, except after passes whose gradients stay on this rank.
  virtual void AfterBackward() {}
  // The sub-groups of the coming optimizer step, whose ends tell the stage which shards are up to date.
  virtual SubGroups GroupsOfStep() { return {}; }
  // Called after the optimizer step: brings the new master weights to where the next forward pass needs them.
  virtual void PublishParameters() = 0;

  // Passes the unit's gradients to the reducer and frees them. The reducer takes the units from last to
  // first, so this happens once all later units were passed on.
  void ReduceGradients(int unit);
  // Brings the shards of all ranks to `flat`, the unit's full parameters: by an AllGather or, if ranks own
  // whole units, by a Broadcast from the owner.
  PendingCollective GatherShards(int unit, const at::Tensor& shard, const at::Tensor& flat,
                                 const CallLabel& label);
  // Returns a view of this rank's shard of the unit in `arena`, a tensor of all shards of this rank.
  at::Tensor Shard(const at::Tensor& arena, int unit) const;
  // Copies this rank's master weights to its shards of the parameters in the model's type, unless the
  // optimizer step has already done so. In fp32 both are one tensor if the optimizer's states are on the
  // parameters' device.
  void RefreshParameterShard();

  // This rank's place among the ranks that hold the same shard. A value that is equal on all these ranks is
  // counted only on the first of them, rank 0.
  int replica_rank() const { return settings_.replicas == nullptr ? 0 : settings_.replicas->rank(); }
  // The number of ranks over which a step averages gradients.
  int64_t data_ranks() const {
    return int64_t{group_->world()} * (settings_.replicas == nullptr ? 1 : settings_.replicas->world());
  }
  bool in_last_micro_step() const { return passes_ + 1 == settings_.micro_steps; }
  bool holds_all_arenas() const { return settings_.stage == 0; }

  // Waits for the collectives that are still in flight. Called before the memory that they read or write is
  // freed: by this class's destructor, and by the destructor of a stage that has such memory itself.
  void DrainCollectives() noexcept;

  ProcessGroup* group_;
  EngineSettings settings_;
  // The flat parameters of each unit, at stable addresses.
  std::deque<FlatParameters> parameters_;
  std::unique_ptr<Partition> partition_;
  std::unique_ptr<BucketReducer> reducer_;
  // The optimizer of this rank's shards (its arena, partition.h). In stage 0 it has the arenas of all ranks,
  // one after another.
  std::unique_ptr<AdamW> optimizer_;
  // This rank's shards of the parameters in the model's type. Not used in stage 0.
  at::Tensor parameter_shard_;

 private:
  void InitialiseUnit(int unit, const at::Tensor& master);
  // Performs the optimizer step with the clipped mean gradients, and publishes the parameters.
  void UpdateParameters(const at::Tensor& gradients, double learning_rate);
  // Creates the pool of contiguous gradients, if this stage keeps gradients beyond their unit's backward
  // pass.
  void ReserveGradients();
  // Fills `sliced_runs_` and `whole_runs_`; without a tensor group both stay empty.
  void FindSlicedAndWhole();
  // Returns the unit's master weights on the host, as one flat tensor. All ranks of the group call it.
  at::Tensor GatherMaster(int unit);
  // Returns the unit's master weights of each tensor rank, on the host and flat. All ranks call it.
  std::vector<at::Tensor> GatherSlices(int unit);
  // Called when the unit has its gradients of this pass. Adds them up locally, or lets the stage sum them
  // over ranks.
  void PassGradients(int unit);
  // Ends the backward pass for units that have parameters without a gradient, because the pass did not use
  // them.
  void PassRemainingUnits();
  // True if gradients are summed over ranks in each pass, and these sums are added up over the passes.
  bool accumulates_shards() const { return settings_.micro_steps > 1 && !accumulates_locally(); }
  // Adds the sums of this pass to those of the step's earlier passes. After the last pass, sums the result
  // over the replicas.
  void AccumulateShard();
  bool accumulates_locally() const {
    return settings_.micro_steps > 1 && (settings_.stage < 2 || settings_.accumulate_locally);
  }
  // Computes loss and gradient norm over all ranks, from this rank's loss and sums of gradients. A collective
  // call.
  StepOutcome Outcome(const at::Tensor& loss, const at::Tensor& gradients);
  // The factor by which the sums of gradients are larger than the mean gradient: ranks * micro-steps * loss
  // scale.
  double GradientFactor() const;
  // Returns the name of the first parameter in this rank's part of `gradients` with an infinite element or a
  // NaN. Empty if there is none.
  std::string FirstNotFinite(const at::Tensor& gradients) const;

  // True if the optimizer step in progress has already written the new values to `parameter_shard_`.
  bool parameter_shard_written_ = false;
  // Returns two numbers: this rank's contributions to the loss and to the squared norm of the gradients.
  at::Tensor ShareOfScalars(const at::Tensor& loss, const at::Tensor& own_gradients) const;

  // With a split sequence: the runs of whole parameters in each arena (the shards of one rank) for which this
  // rank has sums.
  std::vector<std::vector<ArenaRun>> whole_runs_;
  // With a tensor group: the runs of sliced parameters in this rank's own arena (its shards, partition.h).
  std::vector<ArenaRun> sliced_runs_;
  LossScale loss_scale_;
  // For each unit, whether the unit has its gradients of this pass.
  std::vector<bool> passed_;
  // For each unit, whether its gradients are ready but wait for the gradients of later units.
  std::vector<bool> reducible_;
  // The unit that the reducer expects next.
  int next_to_reduce_ = 0;
  // Number of completed backward passes of this step.
  int64_t passes_ = 0;
  // Memory for contiguous gradients. Null if gradients are allocated in each pass.
  std::unique_ptr<ContiguousPool> gradient_pool_;
  // Sums of the step's passes so far for this rank's shards, in fp32. Not used with one micro-step, nor when
  // gradients are added up locally.
  at::Tensor accumulated_;
};

}  // namespace dynamiccl::zero
