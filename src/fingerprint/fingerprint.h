// SPDX-License-Identifier: Apache-2.0
// Summary of a window of calls: how many calls of each collective and size it held. Reports and the histogram
// baseline of evaluations use it; decisions never do.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "src/collective/collective_call.h"

namespace dynamiccl {

// Counts by collective. A plain value that its user fills with Add; one thread at a time.
struct Fingerprint {
  static constexpr int kOctaves = 64;

  uint64_t calls = 0;
  std::array<uint64_t, kCollectives> count{};
  std::array<uint64_t, kCollectives> bytes{};
  // Number of calls by [collective][floor(log2(bytes))].
  std::array<std::array<uint32_t, kOctaves>, kCollectives> sizes{};

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// Counts one call. Calls with a collective outside the enum are ignored.
void Add(Fingerprint& fingerprint, const CollectiveCall& call);
// Returns the fingerprint of all calls of the window.
Fingerprint Summarise(std::span<const CollectiveCall> window);

// Number of octaves below the largest call that are counted separately; smaller calls share the last one. 24
// octaves reach from 1 GiB down to 64 bytes.
inline constexpr int kHistogramOctaves = 24;
// The rows of a histogram: the collectives up to Recv. Calls of the other exchanges count as SendRecv.
inline constexpr int kHistogramRows = 8;
constexpr size_t HistogramRow(Collective collective) {
  return static_cast<size_t>(IsExchange(collective) ? Collective::kSendRecv : collective);
}
// Share of calls by (row, octaves below the largest call).
using Histogram = std::array<float, kHistogramRows * kHistogramOctaves>;
// Returns the shares, which sum to 1 or are all 0 for an empty fingerprint. Sizes are relative to the largest
// call, so the histogram does not depend on the model's width.
Histogram RelativeHistogram(const Fingerprint& fingerprint);

}  // namespace dynamiccl
