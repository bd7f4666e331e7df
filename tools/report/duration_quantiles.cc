// SPDX-License-Identifier: Apache-2.0
#include "tools/report/duration_quantiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

// Each power of two has 2^7 bins; each duration below 2^7 has a bin of its own.
constexpr int kBits = 7;
constexpr size_t kBins = (32 - kBits + 1) << kBits;
constexpr double kShares[] = {0.5, 0.25, 0.75};

size_t BinOf(uint32_t ns) {
  const int shift = std::max(static_cast<int>(std::bit_width(ns)) - kBits - 1, 0);
  return (static_cast<size_t>(shift) << kBits) + (ns >> shift);
}

uint32_t Saturated(int64_t ns) {
  return static_cast<uint32_t>(std::clamp<int64_t>(ns, 0, UINT32_MAX));
}

double Microseconds(uint32_t ns) {
  return static_cast<double>(ns) * 1e-3;
}

// The position of a quantile in n sorted values, as in src/base/statistics.h.
double PositionOf(double share, uint64_t n) {
  return share * static_cast<double>(n - 1);
}

}  // namespace

void DurationQuantiles::Add(int64_t ns) {
  ++count_;
  if (count_ <= kKept) return kept_.push_back(Saturated(ns));
  if (bins_.empty()) {
    bins_.resize(kBins);
    for (const uint32_t kept : kept_) ++bins_[BinOf(kept)];
    kept_ = {};
  }
  ++bins_[BinOf(Saturated(ns))];
}

void DurationQuantiles::BeginAgain() {
  if (!needs_second_pass()) return;
  for (const double share : kShares) {
    const auto place = static_cast<uint64_t>(PositionOf(share, count_));
    uint64_t before = 0;
    for (size_t bin = 0; bin < bins_.size() && before <= place + 1; before += bins_[bin++]) {
      if (bins_[bin] > 0 && before + bins_[bin] > place) inside_[bin];
    }
  }
}

void DurationQuantiles::AddAgain(int64_t ns) {
  const uint32_t value = Saturated(ns);
  if (const auto bin = inside_.find(BinOf(value)); bin != inside_.end()) ++bin->second[value];
}

// The value at `place` of all sorted durations, which must lie in a bin that was counted.
uint32_t DurationQuantiles::ValueAt(uint64_t place) const {
  uint64_t before = 0;
  size_t bin = 0;
  while (before + bins_[bin] <= place) before += bins_[bin++];
  for (const auto& [value, count] : inside_.at(bin)) {
    before += count;
    if (before > place) return value;
  }
  return 0;
}

double DurationQuantiles::QuantileUs(double share) const {
  const double position = PositionOf(share, count_);
  const auto place = static_cast<uint64_t>(position);
  const double fraction = position - static_cast<double>(place);
  const double below = dynamiccl::Microseconds(ValueAt(place));
  return fraction == 0 ? below : std::lerp(below, dynamiccl::Microseconds(ValueAt(place + 1)), fraction);
}

Timing DurationQuantiles::Microseconds() const {
  if (!needs_second_pass()) {
    std::vector<double> microseconds;
    std::ranges::transform(kept_, std::back_inserter(microseconds), dynamiccl::Microseconds);
    return Summarize(std::move(microseconds));
  }
  return {QuantileUs(kShares[0]), QuantileUs(kShares[1]), QuantileUs(kShares[2]), static_cast<int>(count_)};
}

double DurationQuantiles::MedianNs() const {
  if (!needs_second_pass()) return Median(kept_);
  const uint64_t place = (count_ - 1) / 2;
  const double below = ValueAt(place);
  return count_ % 2 == 1 ? below : (below + ValueAt(place + 1)) / 2;
}

}  // namespace dynamiccl
