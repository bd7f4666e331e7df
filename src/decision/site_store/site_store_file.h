// SPDX-License-Identifier: Apache-2.0
// Reads and writes site stores (.dcsite). Grammar: docs/formats/site_store.md. What is damaged is refused
// whole.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/decision/site_store/site_store.h"

namespace dynamiccl {

inline constexpr char kSiteStoreMagic[8] = {'D', 'Y', 'N', 'C', 'S', 'I', 'T', '1'};

// Equal stores give equal bytes.
std::vector<std::byte> FormatSiteStore(const SiteStore& store);
// `name` stands in errors.
Result<SiteStore> ParseSiteStore(std::span<const std::byte> bytes, const std::string& name);

// A file that does not exist is an empty store.
Result<SiteStore> ReadSiteStore(const std::string& path);

// Adds what a run has learnt to the file, whatever other jobs have written there meanwhile: under a lock
// (`path`.lock), read, merged, aged, written beside and renamed. A damaged file is kept as `path`.damaged and
// begun anew. Gives up when another process holds the lock for `patience_ns`.
Status AddToSiteStore(const std::string& path, const SiteStore& learnt, int64_t now_s,
                      int64_t patience_ns = 1'000'000'000);

}  // namespace dynamiccl
