// SPDX-License-Identifier: Apache-2.0
// Decides when DeepSpeed's ZeRO stage 3 gathers and releases which parameters. It fetches before a module's
// use, prefetches along the recorded order, and releases after the use. This is a model of
// PartitionedParameterCoordinator (deepspeed/runtime/zero/partitioned_param_coordinator.py, 0.19.8).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "traces/generators/model_shape.h"

namespace dynamiccl {

// DeepSpeed's settings that steer the coordinator, in elements of the whole parameters.
struct CoordinatorLimits {
  int64_t prefetch_elements = 0;    // stage3_prefetch_bucket_size
  int64_t live_elements = 0;        // stage3_max_live_parameters
  int64_t reuse_elements = 0;       // stage3_max_reuse_distance
  int64_t persistent_elements = 0;  // stage3_param_persistence_threshold
};

// The coordinator of one rank during one pass. It is a pure state machine: the caller takes it through the
// modules in the order of their use, and it reports each gather through a callback.
class GatherCoordinator {
 public:
  // Receives the indices of the parameters that one gather brings.
  using Gather = std::function<void(const std::vector<size_t>&)>;

  // `recorded`: an earlier pass has shown the order of use, so this pass prefetches. Without such a record,
  // every module fetches only its own parameters, and releases all that it used, even persistent parameters.
  // `model` must outlive this object.
  GatherCoordinator(const ModelShape& model, const CoordinatorLimits& limits, bool recorded, Gather gather);

  GatherCoordinator(const GatherCoordinator&) = delete;
  GatherCoordinator& operator=(const GatherCoordinator&) = delete;

  // Call these in the order in which the framework's hooks run: forward over all modules, then backward in
  // reverse.
  void BeforeUse(const ModuleShape& module);
  void AfterUse(const ModuleShape& module);

  // True for a parameter so small that it stays gathered.
  static bool IsPersistent(const ParameterShape& parameter, const CoordinatorLimits& limits) {
    return parameter.Elements() <= limits.persistent_elements;
  }

 private:
  // One use of a parameter, in the order that the recorded pass showed.
  struct Use {
    size_t parameter;
    int64_t step;
  };

  // Gathers parameters that are not available.
  void GatherNow(const std::vector<size_t>& parameters);
  void DropFromQueue(const ModuleShape& module);
  void Prefetch();
  // True if a later module of this pass uses the parameter before reuse_elements elements of other parameters
  // have passed.
  bool IsReusedSoon(size_t parameter) const;

  const ModelShape& model_;
  const CoordinatorLimits limits_;
  const bool recorded_;
  const Gather gather_;
  std::vector<ModuleShape> modules_;
  std::vector<const ModuleShape*> order_;
  std::deque<Use> queue_;
  int64_t step_ = 0;             // number of modules used so far
  int64_t live_ = 0;             // elements gathered and not released
  std::vector<bool> available_;  // by parameter: whether it is gathered
  // For each parameter, the latest step for which it was taken from the queue.
  std::vector<int64_t> last_fetched_for_;
};

}  // namespace dynamiccl
