// SPDX-License-Identifier: Apache-2.0
// Shows the contents of a site store (src/decision/site_store), for `dynamiccl inspect`.
#pragma once

#include <string>

#include "src/decision/site_store/site_store.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// Returns the contents as a table for people. `now_s`, in seconds since 1970, serves to show the age of
// entries and whether a job would use them now.
std::string SiteStoreAsText(const SiteStore& store, int64_t now_s);
// Returns the same table as JSON.
Json SiteStoreAsJson(const SiteStore& store, int64_t now_s);

}  // namespace dynamiccl
