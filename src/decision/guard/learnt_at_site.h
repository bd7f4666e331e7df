// SPDX-License-Identifier: Apache-2.0
// Copies results between a guard and the site store: what this run has settled goes into the store, and what
// earlier runs settled comes out. Pure functions; the caller loads and saves the store.
#pragma once

#include "src/decision/guard/guard.h"
#include "src/decision/site_store/site_store.h"

namespace dynamiccl {

// Returns what this run adds to the store. These are the keys whose search ended, the keys whose choice an
// earlier run found and new samples confirmed, each with its state of the fabric, and the effects of configs
// on steps (Guard::Findings). Keys captured into CUDA graphs are left out. `now_s` is the wall clock in
// seconds. The store adds up pairs and runs, so call this once for each save.
SiteStore LearntAtSite(const Guard& guard, const SitePlace& place, int64_t now_s);

// Returns KeyKnowledge::confirmed for a key; nothing if the store has no entry, or one that is too old.
std::optional<CollectiveConfig> ConfirmedAtSite(const SiteStore& store, const SitePlace& place,
                                                const TableKey& key, Regime regime, int64_t now_s);

}  // namespace dynamiccl
