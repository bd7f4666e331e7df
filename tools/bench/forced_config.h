// SPDX-License-Identifier: Apache-2.0
// Forces configs through the sweep's tuner plugin, which NCCL has loaded into this process.
#pragma once

#include <string>

#include "src/base/dynamic_library.h"
#include "src/collective/collective_config.h"
#include "tools/bench/sweep_tuner.h"

namespace dynamiccl {

// A handle on the plugin's two functions. The forced config is state of the plugin, so two handles of one
// process force the same calls.
class ForcedConfig {
 public:
  // `path` is the plugin that NCCL_TUNER_PLUGIN names. NCCL has loaded it already, and the loader returns the
  // same object.
  static Result<ForcedConfig> Open(const std::string& path);

  // Forces `config` for all later calls of this process; kLeaveNcclAlone forces nothing. Call it while no
  // call is being issued.
  void Force(const CollectiveConfig& config) const;
  void ForceNothing() const { force_(-1, -1, 0); }
  // The plugin's latest view: constants, cost table and number of questions.
  dynamicclSweepView_t View() const;

 private:
  DynamicLibrary library_;
  void (*force_)(int, int, int) = nullptr;
  void (*view_)(dynamicclSweepView_t*) = nullptr;
};

}  // namespace dynamiccl
