// SPDX-License-Identifier: Apache-2.0
// The stages in which every rank keeps all parameters: plain data parallelism (0), divided optimizer state
// (1), and divided optimizer state and gradients (2).
#pragma once

#include <vector>

#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {

// AllReduce of each bucket during the backward pass of the last micro-step; every rank updates everything.
class Stage0 final : public ZeroEngine {
 public:
  Stage0(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings)
      : ZeroEngine(std::move(model), group, settings) {}

 protected:
  void GradientsReady(int unit) override;
  void PublishParameters() override;
};

// P_os: all gradients are kept until the last micro-step's backward pass is over, then ReduceScatter of each
// bucket; a rank updates its shard, and AllGathers bring all shards to all ranks.
class Stage1 : public ZeroEngine {
 public:
  Stage1(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings);
  // Waits for the gather of the unit's updated parameters.
  void BeforeForward(int unit) override;

 protected:
  void GradientsReady(int) override {}
  void AfterBackward() override;
  void PublishParameters() override;

 private:
  std::vector<PendingCollective> gathers_;  // by unit
};

// P_os+g: as stage 1, but buckets are reduced during the backward pass of every micro-step, and a unit's
// gradients are freed once they are in one.
class Stage2 final : public Stage1 {
 public:
  using Stage1::Stage1;

 protected:
  void GradientsReady(int unit) override { ReduceGradients(unit); }
  void AfterBackward() override {}
};

}  // namespace dynamiccl::zero
