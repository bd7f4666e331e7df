// SPDX-License-Identifier: Apache-2.0
// What the ZeRO stages share: flat parameters, the shard of optimizer state, gradient sums and the optimizer
// step. A stage says when gradients are summed, who holds which parameters when, and how updated parameters
// reach their users.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>
#include <string>

#include "zero_workloads/models/gpt.h"
#include "zero_workloads/optimizer/adamw.h"
#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/zero/bucket_reducer.h"
#include "zero_workloads/zero/flat_parameters.h"
#include "zero_workloads/zero/partition.h"

namespace dynamiccl::zero {

struct EngineSettings {
  int stage = 0;
  int64_t bucket_bytes = 4 << 20;
  bool overlap = true;   // gradient sums during the backward pass, gathers of updated parameters during the
                         // next forward pass
  bool prefetch = true;  // stage 3: gathers the next unit while this one computes
  int64_t micro_steps = 1;  // backward passes before each optimizer step
  uint64_t seed = 1;
  at::ScalarType type = at::kFloat;  // of parameters, activations and gradients; master weights are fp32
  at::Device device = at::kCPU;
  double clip_norm = 1.0;
  AdamWSettings adamw;
};

struct StepOutcome {
  float loss = 0.0f;           // mean over the ranks and micro-steps
  float gradient_norm = 0.0f;  // of the mean gradient, before clipping
};

class ZeroEngine : public UnitHooks {
 public:
  // Binds the model's parameters and gives them their first values. Model and group outlive the engine.
  static std::unique_ptr<ZeroEngine> Create(Gpt* model, ProcessGroup* group, const EngineSettings& settings);

  // Called micro_steps times, each after a forward pass, before each Step.
  void Backward(const at::Tensor& loss);
  // Clips, updates and publishes the parameters. `loss` is this rank's, mean over the micro-steps. A loss or
  // norm that is not finite throws std::runtime_error on all ranks.
  StepOutcome Step(const at::Tensor& loss, double learning_rate);

  // Trainable numbers of the model, without padding.
  int64_t ParameterCount() const;
  // SHA-256 over all master weights, gathered, in the order of parameter names: equal for any stage, world
  // size, bucket.
  std::string ParameterDigest();

  void BeforeForward(int) override {}
  void AfterForward(int, const at::Tensor&) override {}

 protected:
  ZeroEngine(Gpt* model, ProcessGroup* group, const EngineSettings& settings);

  // Called in the backward pass, when autograd is through with the unit.
  virtual void GradientsReady(int unit) = 0;
  // Called after the backward pass.
  virtual void AfterBackward() {}
  // Called after the optimizer step: brings the new master weights to where the next forward pass needs them.
  virtual void PublishParameters() = 0;

  // Hands the unit's gradients to the reducer and frees them.
  void ReduceGradients(int unit);
  // The own shard of the unit in a tensor over the arena.
  at::Tensor Shard(const at::Tensor& arena, int unit) const;
  // Copies the master weights to the shard of parameters in the model's type; in fp32 they are one tensor.
  void RefreshParameterShard();

  bool in_last_micro_step() const { return passes_ + 1 == settings_.micro_steps; }
  int units() const { return partition_->units(); }
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
  at::Tensor GatherMaster(int unit);
  // Adds the sums of this pass to those of the step's earlier passes, where the stage reduces in each pass.
  void AccumulateShard();

  int64_t passes_ = 0;      // backward passes of this step that are over
  at::Tensor accumulated_;  // fp32, over the own arena; not used with one micro-step, nor in stages 0 and 1
};

}  // namespace dynamiccl::zero
