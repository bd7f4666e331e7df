// SPDX-License-Identifier: Apache-2.0
// What one release of NCCL chooses by itself otherwise than another, on described machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/nccl_choices.h"

namespace dynamiccl {

template <typename T>
struct Between {
  T least = {};
  T most = {};

  void Widen(T value) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
};

// One release's side of a range of sizes.
struct ChosenRange {
  NcclPair pair;
  Between<int> channels;
  Between<float> microseconds;  // that it expects of its own choice; NaN where it tells none
};

// Neighbouring sizes at which both releases choose one pair each, and these differ, or their channels do.
struct ChangedRange {
  NcclWorld world;
  Collective collective = Collective::kAllReduce;
  Between<uint64_t> bytes;  // NCCL's total; what is between two neighbours of the data set is not known
  ChosenRange before;
  ChosenRange after;

  bool other_pair() const { return before.pair != after.pair; }
};

struct NcclComparison {
  std::string before;  // "2.28.9"
  std::string after;
  std::vector<NcclWorld> worlds;  // that the data has of both
  size_t calls = 0;               // compared
  size_t other_pairs = 0;         // of them with another algorithm or protocol
  size_t other_channels = 0;      // with other channels alone
  std::vector<ChangedRange> ranges;
};

// Of one machine, or of all where `machine` is empty. A release or machine that the data does not have is an
// error that lists those it has.
Result<NcclComparison> CompareReleases(const NcclChoices& choices, const std::string& before,
                                       const std::string& after, const std::string& machine);

}  // namespace dynamiccl
