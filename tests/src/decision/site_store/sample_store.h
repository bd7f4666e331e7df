// SPDX-License-Identifier: Apache-2.0
// Site stores of random, legal entries.
#pragma once

#include <random>

#include "src/decision/site_store/site_store.h"

namespace dynamiccl::testing {

inline constexpr int64_t kNow = 1'800'000'000;
inline constexpr int64_t kDay = 24 * 3600;

inline SiteKey RandomKey(std::mt19937_64& random) {
  SiteKey key;
  for (uint8_t& byte : key.place.fabric) byte = static_cast<uint8_t>(random() % 3);
  key.place.nccl_version = 23007;
  key.place.n_ranks = static_cast<int32_t>(2 + random() % 8);
  key.place.n_nodes = static_cast<int32_t>(1 + random() % 2);
  key.key.collective = static_cast<Collective>(random() % kTunableCollectives);
  key.key.size_class.index = static_cast<uint8_t>(random() % 100);
  key.key.role = static_cast<Role>(random() % kRoles);
  return key;
}

inline Confirmed RandomConfirmed(std::mt19937_64& random) {
  Confirmed confirmed;
  if (random() % 4 != 0) confirmed.config = {Algorithm::kRing, static_cast<Protocol>(random() % 3), 4};
  confirmed.log2_ratio = -static_cast<int32_t>(random() % 65536);
  confirmed.pairs = 5 + static_cast<uint32_t>(random() % 20);
  confirmed.runs = 1;
  confirmed.confirmed_s = kNow - static_cast<int64_t>(random() % (20 * kDay));
  return confirmed;
}

inline SiteStore RandomStore(uint64_t seed, int entries) {
  std::mt19937_64 random(seed);
  SiteStore store;
  for (int i = 0; i < entries; ++i) store.Learn(RandomKey(random), RandomConfirmed(random));
  return store;
}

}  // namespace dynamiccl::testing
