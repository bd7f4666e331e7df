// SPDX-License-Identifier: Apache-2.0
// What jobs on this site have learnt and confirmed, by fabric, NCCL version, shape of the communicator and
// key. A later job begins with these results and does not try them again. Values only: site_store_file.h
// reads and writes them.
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

// The place where something was learnt. Another machine, another topology, or different values of variables
// that influence what NCCL measures make another place.
struct SitePlace {
  // Digest of the constants that NCCL measured at init.
  std::array<uint8_t, 16> fabric{};
  uint32_t nccl_version = 0;  // as NCCL_VERSION_CODE
  int32_t n_ranks = 1;
  int32_t n_nodes = 1;

  auto operator<=>(const SitePlace&) const = default;
};

// The subject of one entry: a key at a place, in a state of the fabric. Entries are ordered by all fields.
struct SiteKey {
  SitePlace place;
  TableKey key;
  Regime regime = Regime::kNormal;

  auto AsTuple() const { return std::tuple(place, key.collective, key.size_class.index, key.role, regime); }
  friend bool operator<(const SiteKey& a, const SiteKey& b) { return a.AsTuple() < b.AsTuple(); }
  friend bool operator==(const SiteKey& a, const SiteKey& b) { return a.AsTuple() == b.AsTuple(); }
};

// The result of runs for a SiteKey.
struct Confirmed {
  // kLeaveNcclAlone: no tried config was better than NCCL's choice.
  CollectiveConfig config;
  // log2 of the config's time over the time of NCCL's choice, in units of 1/65536 (16 fraction bits).
  int32_t log2_ratio = 0;
  uint32_t pairs = 0;       // number of paired samples behind the result
  uint32_t runs = 0;        // number of runs that confirmed it
  int64_t confirmed_s = 0;  // time of the last confirmation, in seconds since 1970

  friend bool operator==(const Confirmed&, const Confirmed&) = default;
};

// An entry is used for 30 days (in seconds); then the key is searched again, because drivers, firmware and
// neighbouring jobs change. After 180 days it is dropped.
inline constexpr int64_t kTrustedSeconds = 30LL * 24 * 3600;
inline constexpr int64_t kForgottenSeconds = 180LL * 24 * 3600;
// The most entries: far more than the keys of a site's jobs. A file of this many entries has 1 MiB.
inline constexpr size_t kMaxSiteEntries = 16384;

// The entries in memory. A value; one thread at a time. Pairs and runs of equal configs add up, so jobs that
// end at the same time may add their results in any order.
class SiteStore {
 public:
  // Adds what a run confirmed. If the config is the known one, its pairs and runs are added; another config
  // replaces the entry, unless the entry is newer.
  void Learn(const SiteKey& key, const Confirmed& confirmed);
  // Returns what a run at time `now_s` (seconds since 1970) may begin with. Nothing if the entry is too old,
  // or from more than a day in the future, which means that a clock was set back.
  std::optional<Confirmed> Known(const SiteKey& key, int64_t now_s) const;
  // Drops entries that are too old, then the oldest ones above kMaxSiteEntries.
  void Age(int64_t now_s);

  const std::map<SiteKey, Confirmed>& entries() const { return entries_; }

 private:
  std::map<SiteKey, Confirmed> entries_;
};

}  // namespace dynamiccl
