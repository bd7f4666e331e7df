// SPDX-License-Identifier: Apache-2.0
// Shows what is in a site store (src/decision/site_store), for `dynamiccl inspect`.
#pragma once

#include <string>

#include "src/decision/site_store/site_store.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// A table for people. `now_s` is in seconds since 1970; it gives the age of entries and whether a job would
// use them now.
std::string SiteStoreAsText(const SiteStore& store, int64_t now_s);
// Returns the same table as JSON.
Json SiteStoreAsJson(const SiteStore& store, int64_t now_s);

}  // namespace dynamiccl
