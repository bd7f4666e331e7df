// SPDX-License-Identifier: Apache-2.0
// Reads and writes site stores (.dcsite). Grammar: docs/formats/site_store.md. A damaged file is refused
// completely.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/decision/site_store/site_store.h"

namespace dynamiccl {

// The first bytes of a site store.
inline constexpr char kSiteStoreMagic[8] = {'D', 'Y', 'N', 'C', 'S', 'I', 'T', '1'};

// Returns the bytes of a file. Equal stores give equal bytes.
std::vector<std::byte> FormatSiteStore(const SiteStore& store);
// Reads the bytes of a file; `name` is used in errors. kCorrupt: damaged or truncated. kUnsupported: another
// format version.
Result<SiteStore> ParseSiteStore(std::span<const std::byte> bytes, const std::string& name);

// Reads a file. A file that does not exist is an empty store.
Result<SiteStore> ReadSiteStore(const std::string& path);

// Adds what a run has learnt to the file, and keeps what other jobs have written to the file. It takes the
// lock `path`.lock, reads, merges, ages, writes a file beside `path` and renames it to `path`. A damaged file
// is renamed to `path`.damaged and begun anew. Fails with kTimeout if another process holds the lock for
// `patience_ns`. A file of another format version stays as it is. `now_s` is in seconds since 1970.
Status AddToSiteStore(const std::string& path, const SiteStore& learnt, int64_t now_s,
                      int64_t patience_ns = 1'000'000'000);

}  // namespace dynamiccl
