// SPDX-License-Identifier: Apache-2.0
// Copies results from a guard to the site store and back: what a run has settled, and what a later run begins
// with. Pure functions; the caller loads and saves the store.
#pragma once

#include "src/decision/guard/guard.h"
#include "src/decision/site_store/site_store.h"

namespace dynamiccl {

// Returns what this run adds to the store: keys whose search ended, and keys whose choice came from an
// earlier run and was confirmed by new samples, each with its state of the fabric; and what steps have shown
// about configs (Guard::Findings). Captured keys are left out. `now_s` is the wall clock in seconds. The
// store adds up pairs and runs, so call this once for each save.
SiteStore LearntAtSite(const Guard& guard, const SitePlace& place, int64_t now_s);

// Returns KeyKnowledge::confirmed for a key; nothing if the store has no entry, or one that is too old.
std::optional<CollectiveConfig> ConfirmedAtSite(const SiteStore& store, const SitePlace& place,
                                                const TableKey& key, Regime regime, int64_t now_s);

}  // namespace dynamiccl
