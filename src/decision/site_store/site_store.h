// SPDX-License-Identifier: Apache-2.0
// What jobs on this site have learnt and confirmed, by fabric, NCCL version, shape of the communicator and
// key. A later job begins with it and tries nothing that is known. Values only: site_store_file.h reads and
// writes them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "src/collective/collective_config.h"
#include "src/collective/role.h"
#include "src/decision/decision_table.h"

namespace dynamiccl {

// Where something was learnt. Another machine, topology, or set of variables that change what NCCL measures
// is another place.
struct SitePlace {
  // Digest of the constants that NCCL measured at init.
  std::array<uint8_t, 16> fabric{};
  uint32_t nccl_version = 0;  // as NCCL_VERSION_CODE
  int32_t n_ranks = 1;
  int32_t n_nodes = 1;

  auto operator<=>(const SitePlace&) const = default;
};

// What one entry is about: a key at a place, in a state of the fabric. Entries are ordered by all fields.
struct SiteKey {
  SitePlace place;
  TableKey key;
  Regime regime = Regime::kNormal;

  auto AsTuple() const { return std::tuple(place, key.collective, key.size_class.index, key.role, regime); }
  friend bool operator<(const SiteKey& a, const SiteKey& b) { return a.AsTuple() < b.AsTuple(); }
  friend bool operator==(const SiteKey& a, const SiteKey& b) { return a.AsTuple() == b.AsTuple(); }
};

// What runs found for a SiteKey.
struct Confirmed {
  // kLeaveNcclAlone: nothing that was tried was better than NCCL's choice.
  CollectiveConfig config;
  // log2 of the config's time over the time of NCCL's choice, in units of 1/65536 (16 fraction bits).
  int32_t log2_ratio = 0;
  uint32_t pairs = 0;       // number of paired samples that showed it
  uint32_t runs = 0;        // number of runs that confirmed it
  int64_t confirmed_s = 0;  // time of the last of them, in seconds since 1970

  friend bool operator==(const Confirmed&, const Confirmed&) = default;
};

// Seconds for which an entry is used: 30 days, then the key is searched again. After 180 days it is dropped.
// Drivers, firmware and neighbours change.
inline constexpr int64_t kTrustedSeconds = 30LL * 24 * 3600;
inline constexpr int64_t kForgottenSeconds = 180LL * 24 * 3600;
// Entries at most: far more than the keys of a site's jobs, and 1 MiB of file.
inline constexpr size_t kMaxSiteEntries = 16384;

// The entries in memory. A value; one thread at a time. Pairs and runs of equal configs add up, so jobs that
// end at the same time may add theirs in any order.
class SiteStore {
 public:
  // Adds what a run confirmed. The same config adds its pairs and runs to what is known; another config
  // replaces an entry that is not newer.
  void Learn(const SiteKey& key, const Confirmed& confirmed);
  // Returns what a run may begin with at this time (seconds since 1970). Nothing if the entry is too old, or
  // from the future by more than a day, which means that a clock was set back.
  std::optional<Confirmed> Known(const SiteKey& key, int64_t now_s) const;
  // Drops entries that are to be forgotten, then the oldest ones above kMaxSiteEntries.
  void Age(int64_t now_s);

  const std::map<SiteKey, Confirmed>& entries() const { return entries_; }

 private:
  std::map<SiteKey, Confirmed> entries_;
};

}  // namespace dynamiccl
