// SPDX-License-Identifier: Apache-2.0
// Forces configs through the sweep's tuner plugin, which NCCL has loaded into this process.
#pragma once

#include <string>

#include "src/base/dynamic_library.h"
#include "src/collective/collective_config.h"
#include "tools/bench/sweep_tuner.h"

namespace dynamiccl {

// Calls the two functions of the sweep's tuner plugin. The plugin itself holds the forced config, so two
// objects of this class in one process force the same config.
class ForcedConfig {
 public:
  // Opens the plugin at `path`, the one that NCCL_TUNER_PLUGIN names. NCCL has loaded it already, so the
  // loader returns the same object.
  static Result<ForcedConfig> Open(const std::string& path);

  // Forces `config` for all later calls of this process. kLeaveNcclAlone leaves the choice to NCCL. Do not
  // call Force while another thread issues a collective.
  void Force(const CollectiveConfig& config) const;
  void ForceNothing() const { force_(-1, -1, 0); }
  // Returns what NCCL passed to the plugin most recently (constants, cost table), and how often NCCL asked
  // the plugin.
  dynamicclSweepView_t View() const;

 private:
  DynamicLibrary library_;
  void (*force_)(int, int, int) = nullptr;
  void (*view_)(dynamicclSweepView_t*) = nullptr;
};

}  // namespace dynamiccl
