// SPDX-License-Identifier: Apache-2.0
// What jobs on this site have learnt and confirmed: by fabric, NCCL version, shape of the communicator and
// key. A later job begins with it and tries nothing that is known. Values only; site_store_file.h reads and
// writes it. One thread at a time.
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

// Where something was learnt. `fabric` is a digest of the constants that NCCL measured at init, so another
// machine, topology or set of variables that change them is another place.
struct SitePlace {
  std::array<uint8_t, 16> fabric{};
  uint32_t nccl_version = 0;  // as NCCL_VERSION_CODE
  int32_t n_ranks = 1;
  int32_t n_nodes = 1;

  auto operator<=>(const SitePlace&) const = default;
};

struct SiteKey {
  SitePlace place;
  TableKey key;
  Regime regime = Regime::kNormal;

  auto AsTuple() const { return std::tuple(place, key.collective, key.size_class.index, key.role, regime); }
  friend bool operator<(const SiteKey& a, const SiteKey& b) { return a.AsTuple() < b.AsTuple(); }
  friend bool operator==(const SiteKey& a, const SiteKey& b) { return a.AsTuple() == b.AsTuple(); }
};

struct Confirmed {
  CollectiveConfig config;  // kLeaveNcclAlone: nothing that was tried was better than NCCL's choice
  int32_t log2_ratio = 0;   // time over that of NCCL's choice, 16 fraction bits
  uint32_t pairs = 0;       // that showed it
  uint32_t runs = 0;        // that confirmed it
  int64_t confirmed_s = 0;  // the last of them, seconds since 1970

  friend bool operator==(const Confirmed&, const Confirmed&) = default;
};

// Drivers, firmware and neighbours change: after so long a choice is tried again, and later forgotten.
inline constexpr int64_t kTrustedSeconds = 30LL * 24 * 3600;
inline constexpr int64_t kForgottenSeconds = 180LL * 24 * 3600;
// Far above the keys of a site's jobs; 1 MiB of file.
inline constexpr size_t kMaxSiteEntries = 16384;

class SiteStore {
 public:
  // A run confirmed this: the same config adds to what is known, another one replaces what is not newer.
  void Learn(const SiteKey& key, const Confirmed& confirmed);
  // What a run may begin with at this time; nothing when it is too old, or from the future by more than a day
  // (a clock that was set back).
  std::optional<Confirmed> Known(const SiteKey& key, int64_t now_s) const;
  // Leaves out what is forgotten, then the oldest above kMaxSiteEntries.
  void Age(int64_t now_s);

  const std::map<SiteKey, Confirmed>& entries() const { return entries_; }

 private:
  std::map<SiteKey, Confirmed> entries_;
};

}  // namespace dynamiccl
