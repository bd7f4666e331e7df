// SPDX-License-Identifier: Apache-2.0
// Which parameters DeepSpeed's ZeRO stage 3 gathers when: fetch before a module's use, prefetch along the
// recorded order, release after it. A model of PartitionedParameterCoordinator
// (deepspeed/runtime/zero/partitioned_param_coordinator.py, 0.19.8).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "traces/generators/model_shape.h"

namespace dynamiccl {

struct CoordinatorLimits {
  int64_t prefetch_elements = 0;    // stage3_prefetch_bucket_size
  int64_t live_elements = 0;        // stage3_max_live_parameters
  int64_t reuse_elements = 0;       // stage3_max_reuse_distance
  int64_t persistent_elements = 0;  // stage3_param_persistence_threshold
};

class GatherCoordinator {
 public:
  // Receives the parameters of one gather.
  using Gather = std::function<void(const std::vector<size_t>&)>;

  // `recorded`: a pass before this one has shown the order, so this one prefetches; without it every module
  // fetches for itself and releases all that it used, persistent ones too.
  GatherCoordinator(const ModelShape& model, const CoordinatorLimits& limits, bool recorded, Gather gather);

  GatherCoordinator(const GatherCoordinator&) = delete;
  GatherCoordinator& operator=(const GatherCoordinator&) = delete;

  // In the order in which the framework's hooks run: forward over all modules, then backward in reverse.
  void BeforeUse(const ModuleShape& module);
  void AfterUse(const ModuleShape& module);

  static bool IsPersistent(const ParameterShape& parameter, const CoordinatorLimits& limits) {
    return parameter.Elements() <= limits.persistent_elements;
  }

 private:
  struct Use {
    size_t parameter;
    int64_t step;
  };

  void GatherNow(const std::vector<size_t>& parameters);
  void DropFromQueue(const ModuleShape& module);
  void Prefetch();
  bool IsReusedSoon(size_t parameter) const;

  const ModelShape& model_;
  const CoordinatorLimits limits_;
  const bool recorded_;
  const Gather gather_;
  std::vector<ModuleShape> modules_;
  std::vector<const ModuleShape*> order_;
  std::deque<Use> queue_;
  int64_t step_ = 0;             // modules used so far
  int64_t live_ = 0;             // elements gathered and not released
  std::vector<bool> available_;  // by parameter
  std::vector<int64_t> last_fetched_for_;
};

}  // namespace dynamiccl
