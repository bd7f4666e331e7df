// SPDX-License-Identifier: Apache-2.0
// Makes site stores of random, legal entries and findings.
#pragma once

#include <random>

#include "src/decision/site_store/site_store.h"

namespace dynamiccl::testing {

inline constexpr int64_t kNow = 1'800'000'000;
inline constexpr int64_t kDay = 24 * 3600;

inline SitePlace RandomPlace(std::mt19937_64& random) {
  SitePlace place;
  for (uint8_t& byte : place.fabric) byte = static_cast<uint8_t>(random() % 3);
  place.nccl_version = 23007;
  place.n_ranks = static_cast<int32_t>(2 + random() % 8);
  place.n_nodes = static_cast<int32_t>(1 + random() % 2);
  return place;
}

inline SiteKey RandomKey(std::mt19937_64& random) {
  SiteKey key;
  key.place = RandomPlace(random);
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

inline FindingKey RandomFindingKey(std::mt19937_64& random) {
  return {RandomPlace(random), static_cast<uint8_t>(1 + random() % 31),
          static_cast<Algorithm>(random() % kAlgorithms), static_cast<Protocol>(random() % kProtocols),
          static_cast<ChannelCount>(random() % kChannelCounts)};
}

// Returns a finding whose numbers are sums of powers of two, which a file keeps exactly.
inline StepFinding RandomFinding(std::mt19937_64& random) {
  const auto eighths = [&](int most) { return static_cast<double>(random() % (8 * most)) / 8; };
  return {{eighths(4), eighths(1)},
          eighths(1) - 0.5,
          0.125 + eighths(1),
          1 + static_cast<uint32_t>(random() % 40),
          kNow - static_cast<int64_t>(random() % (20 * kDay))};
}

// Returns a store with `entries` entries, less those with equal keys, and half as many findings.
inline SiteStore RandomStore(uint64_t seed, int entries) {
  std::mt19937_64 random(seed);
  SiteStore store;
  for (int i = 0; i < entries; ++i) store.Learn(RandomKey(random), RandomConfirmed(random));
  for (int i = 0; i < entries / 2; ++i) store.Learn(RandomFindingKey(random), RandomFinding(random));
  return store;
}

}  // namespace dynamiccl::testing
