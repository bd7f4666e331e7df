// SPDX-License-Identifier: Apache-2.0
// Makes NCCL call this object as its tuner and its profiler, beside the plugins that the user named. NCCL
// reads NCCL_TUNER_PLUGIN and NCCL_PROFILER_PLUGIN at its first communicator. Before that, this object writes
// its own name there; it then calls the user's plugins itself.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "plugin/chain/chained_tuner.h"
#include "plugin/runtime/job_settings.h"

namespace dynamiccl {

// Owned by the process's runtime; any thread. A user's plugin that cannot be loaded is logged once and left
// out.
class PluginOffers {
 public:
  // `settings` outlives this object.
  explicit PluginOffers(const JobSettings& settings) : settings_(settings) {}

  // Writes the variables that the mode needs. Called before each communicator; only the first call has an
  // effect.
  void Offer();
  // Returns the tuner plugin that the user named, or null. The first call loads it; it is never unloaded.
  const ChainedTuner* chained_tuner();
  // Returns the original value of NCCL_PROFILER_PLUGIN: an empty text if it was not set, nothing if Offer did
  // not change it. Valid once NCCL has called this object as its profiler.
  const std::optional<std::string>& profiler_to_chain() const { return profiler_to_chain_; }

 private:
  void OfferAsTuner();
  void OfferAsProfiler();

  const JobSettings& settings_;
  std::mutex mutex_;  // guards the members below
  bool offered_ = false;
  bool tuner_offered_ = false;
  bool chain_tried_ = false;
  std::optional<std::string> profiler_to_chain_;  // set before NCCL can ask
  std::unique_ptr<ChainedTuner> chained_;
};

}  // namespace dynamiccl
