// SPDX-License-Identifier: Apache-2.0
// Compares what two releases of NCCL choose by themselves, on described machines (docs: `dynamiccl doctor
// --compare-nccl`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/nccl_choices.h"

namespace dynamiccl {

// An interval that grows with each value. It begins as one value in both fields.
template <typename T>
struct Between {
  T least = {};
  T most = {};

  void Widen(T value) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
};

// Holds what one release chooses in a range of sizes.
struct ChosenRange {
  NcclPair pair;
  Between<int> channels;
  // Time that the release's cost model predicts for its choice; NaN if the release gives no time.
  Between<float> microseconds;
};

// A range of neighbouring sizes in which each release makes a single choice. The choices of the two releases
// differ in algorithm, protocol or channels.
struct ChangedRange {
  NcclWorld world;
  Collective collective = Collective::kAllReduce;
  // Smallest and largest size of the range, in NCCL's total bytes. The data has only some sizes; what the
  // releases choose between two of these is not known.
  Between<uint64_t> bytes;
  ChosenRange before;
  ChosenRange after;

  // Returns whether the choices differ in algorithm or protocol, and not only in the number of channels.
  bool other_pair() const { return before.pair != after.pair; }
};

// Result of a comparison.
struct NcclComparison {
  std::string before;  // "2.28.9"
  std::string after;
  // Worlds for which the data has both releases.
  std::vector<NcclWorld> worlds;
  // Compared calls.
  size_t calls = 0;
  // Number of calls for which the releases choose different algorithms or protocols.
  size_t other_pairs = 0;
  // Number of calls for which the choices differ only in the number of channels.
  size_t other_channels = 0;
  std::vector<ChangedRange> ranges;
};

// Compares on one machine, or on all where `machine` is empty. An unknown release or machine is an error
// (kNotFound) that lists the known ones.
Result<NcclComparison> CompareReleases(const NcclChoices& choices, const std::string& before,
                                       const std::string& after, const std::string& machine);

}  // namespace dynamiccl
