// SPDX-License-Identifier: Apache-2.0
// What is in a site store, as `dynamiccl inspect` shows it.
#pragma once

#include <string>

#include "src/decision/site_store/site_store.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// `now_s`: seconds since 1970, for the age of entries and whether a job would use them.
std::string SiteStoreAsText(const SiteStore& store, int64_t now_s);
Json SiteStoreAsJson(const SiteStore& store, int64_t now_s);

}  // namespace dynamiccl
