// SPDX-License-Identifier: Apache-2.0
// Which collectives a window of calls held, and of what sizes: for reports and for the histogram baseline of
// evaluations. Decisions never use it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "src/collective/collective_call.h"

namespace dynamiccl {

struct Fingerprint {
  static constexpr int kOctaves = 64;

  uint64_t calls = 0;
  std::array<uint64_t, kCollectives> count{};
  std::array<uint64_t, kCollectives> bytes{};
  // Calls by octave of their bytes: [collective][floor(log2(bytes))].
  std::array<std::array<uint32_t, kOctaves>, kCollectives> sizes{};

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

void Add(Fingerprint& fingerprint, const CollectiveCall& call);
Fingerprint Summarise(std::span<const CollectiveCall> window);

// Share of calls by (collective, size as octaves below the largest call): sums to 1, independent of the
// model's width.
inline constexpr int kHistogramOctaves = 24;
using Histogram = std::array<float, kCollectives * kHistogramOctaves>;
Histogram RelativeHistogram(const Fingerprint& fingerprint);

}  // namespace dynamiccl
