// SPDX-License-Identifier: Apache-2.0
// The stages in which every rank keeps all parameters: plain data parallelism (0), partitioned optimizer
// states (1), and partitioned optimizer states and gradients (2). See sections 5.1 and 5.2 of the ZeRO paper
// (Rajbhandari et al. 2020).
#pragma once

#include <vector>

#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {

// Plain data parallelism: AllReduce of each bucket during the backward pass of the last micro-step. Every
// rank performs the whole optimizer step.
class Stage0 final : public ZeroEngine {
 public:
  Stage0(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings)
      : ZeroEngine(std::move(model), group, settings) {}

 protected:
  void GradientsReady(int unit) override;
  void PublishParameters() override;
};

// ZeRO stage 1 (the paper's P_os): all gradients are kept until the backward pass of the last micro-step is
// over, and each bucket is then reduced by ReduceScatter. A rank updates its shard of the parameters, and
// AllGathers bring all shards to all ranks. The optimizer updates the shards in the order of the forward
// pass, and each unit is gathered as soon as its shard is updated, while the optimizer works on the next one.
class Stage1 : public ZeroEngine {
 public:
  Stage1(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings);
  // Waits for the gather of the unit's updated parameters.
  void BeforeForward(int unit) override;
  void AwaitParameters() override;

 protected:
  void GradientsReady(int) override {}
  void AfterBackward() override;
  SubGroups GroupsOfStep() override;
  void PublishParameters() override;

 private:
  // Starts the gathers of those units that are not gathered yet and whose shards lie in the arena from
  // `begin` on.
  void GatherFrom(int64_t begin);

  // The first unit that has not been gathered since the last step.
  int next_to_gather_ = 0;
  // For each unit, the gather of the latest step, until BeforeForward has waited for it.
  std::vector<PendingCollective> gathers_;
};

// ZeRO stage 2 (the paper's P_os+g): as stage 1, but buckets are reduced during the backward pass of every
// micro-step. A unit's gradients are freed once they are in a bucket.
class Stage2 final : public Stage1 {
 public:
  using Stage1::Stage1;

 protected:
  void GradientsReady(int unit) override { ReduceGradients(unit); }
  void AfterBackward() override {}
};

}  // namespace dynamiccl::zero
