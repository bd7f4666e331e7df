// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/plugin_offers.h"

#include <cstdlib>
#include <utility>

#include "plugin/border/nccl_variable.h"
#include "plugin/border/real_nccl.h"
#include "src/base/log.h"

namespace dynamiccl {

void PluginOffers::Offer() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(offered_, true)) return;
  if (Chooses(settings_.mode)) OfferAsTuner();
  if (TimesCalls(settings_)) OfferAsProfiler();
}

void PluginOffers::OfferAsProfiler() {
  const std::string plugin = NcclVariable("NCCL_PROFILER_PLUGIN").value_or("");
  if (plugin == "none") {
    Log(LogLevel::kWarn, "nothing is timed: NCCL_PROFILER_PLUGIN=none was set");
    return;
  }
  if (!plugin.empty() && NamesThisObject(plugin)) return;
  profiler_to_chain_ = plugin;
  ::setenv("NCCL_PROFILER_PLUGIN", OwnPluginName(NcclVersion()).c_str(), 1);
}

void PluginOffers::OfferAsTuner() {
  tuner_offered_ = true;
  if (settings_.tuner_plugin == "none") {
    Log(LogLevel::kWarn, "NCCL_TUNER_PLUGIN=none was set: NCCL's choice stays");
  } else {
    const std::string own = OwnPluginName(NcclVersion());
    // A name of this object that the user gave stays, where NCCL opens such names.
    const bool stays = NamesThisObject(settings_.tuner_plugin) && !settings_.tuner_plugin.empty();
    if (!stays || own == "libdynamiccl.so") ::setenv("NCCL_TUNER_PLUGIN", own.c_str(), 1);
  }
  const std::string pins = PinnedByUser(settings_);
  if (pins != "none") Log(LogLevel::kWarn, "what you pinned stays as you set it: {}", pins);
}

const ChainedTuner* PluginOffers::chained_tuner() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(chain_tried_, true)) return chained_.get();
  const std::string& named = settings_.tuner_plugin;
  // Without a name NCCL would have tried its default one. Where the user named this object as the plugin,
  // there is no other.
  const bool by_default = named.empty() && tuner_offered_;
  if (!by_default && NamesThisObject(named)) return nullptr;
  auto chained = ChainedTuner::Find(by_default ? "" : named);
  if (chained) {
    chained_ = std::move(*chained);
    Log(LogLevel::kInfo, "the default is what tuner plugin {} says", chained_->name());
  } else if (!by_default) {
    Log(LogLevel::kWarn, "NCCL_TUNER_PLUGIN is not used: {}", chained.error().message);
  }
  return chained_.get();
}

}  // namespace dynamiccl
