// SPDX-License-Identifier: Apache-2.0
// How NCCL comes to call this object as its tuner and its profiler, beside the plugins that the user named.
// NCCL reads NCCL_TUNER_PLUGIN and NCCL_PROFILER_PLUGIN at its first communicator: this object writes its own
// name there before that, and calls the user's plugins itself.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "plugin/chain/chained_tuner.h"
#include "plugin/runtime/job_settings.h"

namespace dynamiccl {

// Owned by the process's runtime; any thread. A plugin of the user's that cannot be loaded is logged once and
// left out.
class PluginOffers {
 public:
  // `settings` outlives this object.
  explicit PluginOffers(const JobSettings& settings) : settings_(settings) {}

  // Writes the variables that the mode needs. Called before each communicator; only the first call does
  // something.
  void Offer();
  // The tuner plugin that the user named; null when there is none. Loaded by the first call, never unloaded.
  const ChainedTuner* chained_tuner();
  // NCCL_PROFILER_PLUGIN as it was before Offer: empty text when it was not set, nothing when it was left as
  // it was. Valid once NCCL has called us as its profiler.
  const std::optional<std::string>& profiler_to_chain() const { return profiler_to_chain_; }

 private:
  void OfferAsTuner();
  void OfferAsProfiler();

  const JobSettings& settings_;
  std::mutex mutex_;  // guards what follows
  bool offered_ = false;
  bool tuner_offered_ = false;
  bool chain_tried_ = false;
  std::optional<std::string> profiler_to_chain_;  // set before NCCL can ask
  std::unique_ptr<ChainedTuner> chained_;
};

}  // namespace dynamiccl
