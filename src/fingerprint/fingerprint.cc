// SPDX-License-Identifier: Apache-2.0
// Counting of calls and their histogram. See fingerprint.h.
#include "src/fingerprint/fingerprint.h"

#include <algorithm>
#include <bit>

namespace dynamiccl {
namespace {

int OctaveOf(uint64_t bytes) {
  return std::max(static_cast<int>(std::bit_width(bytes)) - 1, 0);
}

}  // namespace

void Add(Fingerprint& fingerprint, const CollectiveCall& call) {
  const auto collective = static_cast<size_t>(call.collective);
  if (collective >= kCollectives) return;
  ++fingerprint.calls;
  ++fingerprint.count[collective];
  fingerprint.bytes[collective] += call.bytes;
  ++fingerprint.sizes[collective][static_cast<size_t>(OctaveOf(call.bytes))];
}

Fingerprint Summarise(std::span<const CollectiveCall> window) {
  Fingerprint fingerprint;
  for (const CollectiveCall& call : window) Add(fingerprint, call);
  return fingerprint;
}

Histogram RelativeHistogram(const Fingerprint& fingerprint) {
  Histogram histogram{};
  if (fingerprint.calls == 0) return histogram;
  int largest = 0;
  for (const auto& sizes : fingerprint.sizes) {
    for (int octave = 0; octave < Fingerprint::kOctaves; ++octave) {
      if (sizes[static_cast<size_t>(octave)] > 0) largest = std::max(largest, octave);
    }
  }
  for (size_t c = 0; c < kCollectives; ++c) {
    const size_t row = HistogramRow(static_cast<Collective>(c));
    for (int octave = 0; octave <= largest; ++octave) {
      const int below = std::min(largest - octave, kHistogramOctaves - 1);
      histogram[row * kHistogramOctaves + static_cast<size_t>(below)] +=
          static_cast<float>(fingerprint.sizes[c][static_cast<size_t>(octave)]) /
          static_cast<float>(fingerprint.calls);
    }
  }
  return histogram;
}

}  // namespace dynamiccl
