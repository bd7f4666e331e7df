// SPDX-License-Identifier: Apache-2.0
#include "tools/report/site_store_effects.h"

#include <fmt/format.h>

#include <set>

namespace dynamiccl {
namespace {

// Channels of a place's communicators. A finding does not say how many there are, only whether the config
// used one, few or many of them. This is NCCL's upper limit.
constexpr int kUnknownMaxChannels = 64;

std::string NameOf(const SitePlace& place) {
  return fmt::format("{:02x}{:02x}{:02x}{:02x}-{}-ranks-{}-nodes", place.fabric[0], place.fabric[1],
                     place.fabric[2], place.fabric[3], place.n_ranks, place.n_nodes);
}

std::string NameOf(const SitePlace& place, const std::string& fabric, size_t places) {
  if (fabric.empty()) return NameOf(place);
  return places == 1 ? fabric : fabric + "-" + NameOf(place);
}

MeasurementContext ContextOf(const SitePlace& place, const std::string& name) {
  MeasurementContext context{name, {}};
  context.model.fabric.n_ranks = place.n_ranks;
  context.model.fabric.n_nodes = place.n_nodes;
  context.model.fabric.max_channels = kUnknownMaxChannels;
  return context;
}

MeasuredEffect EffectOf(const FindingKey& key, const StepFinding& finding) {
  MeasuredEffect effect;
  effect.collectives = key.collectives;
  effect.slowness = finding.circumstances.slowness;
  effect.share = finding.circumstances.share;
  effect.config = {key.algorithm, key.protocol, 0};
  effect.channel_count = key.channels;
  effect.log_ratio = finding.effect;
  effect.error = finding.error;
  effect.steps = finding.steps;
  return effect;
}

}  // namespace

Result<MeasurementFile> EffectsInStore(const SiteStore& store, const std::string& fabric) {
  // A place is named by the digest alone, so findings of two NCCL versions share a topology.
  std::set<SitePlace> places;
  for (const auto& [key, finding] : store.findings()) {
    if (key.algorithm == Algorithm::kUndefined) continue;
    SitePlace place = key.place;
    place.nccl_version = 0;
    places.insert(place);
  }
  if (places.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "the site store has no findings about configs"),
                    "jobs in mode adaptive add them when they try configs (docs/guard.md)");
  MeasurementFile file;
  file.library = "site store";
  for (const SitePlace& place : places)
    file.contexts.push_back(ContextOf(place, NameOf(place, fabric, places.size())));
  for (const auto& [key, finding] : store.findings()) {
    if (key.algorithm == Algorithm::kUndefined) continue;
    file.effects.push_back(EffectOf(key, finding));
    file.effects.back().topology = NameOf(key.place, fabric, places.size());
  }
  return file;
}

}  // namespace dynamiccl
