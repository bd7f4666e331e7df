// SPDX-License-Identifier: Apache-2.0
// When a call of a group is issued, guesses the size class that NCCL will ask about. NCCL asks about batches,
// whose bytes are known only when the group ends. Programs repeat their groups, so the last answer is the
// guess. A wrong guess opens a timing window in vain, or misses one; no choice depends on it.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

// One for each communicator; issuing threads only. A small table without collision handling: a call of
// another size with the same index overwrites the entry.
class SizeClassPredictor {
 public:
  SizeClass Predict(Collective collective, uint64_t bytes) const {
    const Place& place = places_[IndexOf(collective, bytes)];
    return place.bytes == bytes && place.collective == collective ? place.asked : SizeClassOf(bytes);
  }
  void Update(Collective collective, uint64_t bytes, SizeClass asked) {
    places_[IndexOf(collective, bytes)] = {bytes, collective, asked};
  }

 private:
  struct Place {
    uint64_t bytes = 0;
    Collective collective = Collective::kAllReduce;
    SizeClass asked;
  };
  static constexpr int kBits = 6;
  static size_t IndexOf(Collective collective, uint64_t bytes) {
    return ((bytes << 3 | static_cast<uint64_t>(collective)) * 0x9e3779b97f4a7c15) >> (64 - kBits);
  }

  std::array<Place, size_t{1} << kBits> places_{};
};

}  // namespace dynamiccl
