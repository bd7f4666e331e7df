// SPDX-License-Identifier: Apache-2.0
// From a guard to the site store and back: what a run has settled, and what a later one begins with.
#pragma once

#include "src/decision/guard/guard.h"
#include "src/decision/site_store/site_store.h"

namespace dynamiccl {

// Keys whose search ended in this run, and keys that an earlier run's choice was used for and that samples of
// NCCL's choice have confirmed again, each with the state of the fabric that it was in then. Captured keys
// are not among them. Asked once, at the end of a run: the store adds up.
SiteStore LearntAtSite(const Guard& guard, const SitePlace& place, int64_t now_s);

// KeyKnowledge::confirmed of a key; nothing where the store does not know, or no longer.
std::optional<CollectiveConfig> ConfirmedAtSite(const SiteStore& store, const SitePlace& place,
                                                const TableKey& key, Regime regime, int64_t now_s);

}  // namespace dynamiccl
