// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/plugin_offers.h"

#include <cstdlib>
#include <utility>

#include "plugin/border/real_nccl.h"
#include "src/base/log.h"

namespace dynamiccl {
namespace {

// Writes the name by which NCCL opens this object into one of its plugin variables. The user's value stays if
// it names this object in a form that NCCL can open. Otherwise another variable keeps the user's value for
// processes that this one starts, because their ranks must chain the same plugin.
void OfferAs(const char* variable, const std::string& by_user) {
  const int nccl = NcclVersion();
  const bool stays = !by_user.empty() && NamesThisObject(by_user) && !OpensLibraryNamesOnly(nccl);
  if (stays) return;
  ::setenv(KeptAs(variable).c_str(), by_user.c_str(), 1);
  ::setenv(variable, OwnPluginName(nccl).c_str(), 1);
}

}  // namespace

void PluginOffers::Offer() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(offered_, true)) return;
  if (Chooses(settings_.mode)) OfferAsTuner();
  if (TimesCalls(settings_)) OfferAsProfiler();
}

void PluginOffers::OfferAsProfiler() {
  const std::string plugin = PluginOfUser("NCCL_PROFILER_PLUGIN");
  if (plugin == "none") {
    Log(LogLevel::kWarn, "nothing is timed: NCCL_PROFILER_PLUGIN=none was set");
    return;
  }
  if (!NamesThisObject(plugin) || plugin.empty()) profiler_to_chain_ = plugin;
  OfferAs("NCCL_PROFILER_PLUGIN", plugin);
}

void PluginOffers::OfferAsTuner() {
  tuner_offered_ = true;
  if (settings_.tuner_plugin == "none") {
    Log(LogLevel::kWarn, "NCCL_TUNER_PLUGIN=none was set: NCCL's choice stays");
  } else {
    OfferAs("NCCL_TUNER_PLUGIN", settings_.tuner_plugin);
  }
  const std::string pins = PinnedByUser(settings_);
  if (pins != "none") Log(LogLevel::kWarn, "what you pinned stays as you set it: {}", pins);
}

const ChainedTuner* PluginOffers::chained_tuner() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(chain_tried_, true)) return chained_.get();
  const std::string& named = settings_.tuner_plugin;
  // If the user named no plugin, NCCL would have tried its default plugin. If the user named this object, no
  // other plugin has to be called.
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
