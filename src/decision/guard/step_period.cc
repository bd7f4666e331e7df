// SPDX-License-Identifier: Apache-2.0
// Follow checks each call against the period; Search looks for a new one. Search applies the failure function
// of Knuth, Morris and Pratt to the calls in reverse order, in time linear in the number of calls.
#include "src/decision/guard/step_period.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// The fewest calls in which a first period is searched, and in which a later one is. A first period is to be
// found early even if steps are short and few. Later, so few equal calls are more likely a part of a step
// that changed.
constexpr size_t kLeastFirstWindow = 12;
constexpr size_t kLeastWindow = 24;
// The calls must show a period this many times in a row. Twice may be a coincidence.
constexpr size_t kTimesSeen = 3;
// A program without a period is searched for one after every so many calls.
constexpr size_t kSeldom = 4096;
// A program that makes other calls now and then, such as an evaluation, keeps its period if its calls fit the
// period again within kStepsToResume steps plus kCallsToResume calls.
constexpr size_t kStepsToResume = 3;
constexpr size_t kCallsToResume = 64;
// Weight of a new step in the average step time.
constexpr double kFollowRate = 1.0 / 8;

}  // namespace

void StepPeriod::Take(uint32_t key, int64_t issued_ns) {
  if (last_.size() < kKept) {
    last_.push_back({key, issued_ns});
  } else {
    last_[taken_ % kKept] = {key, issued_ns};
  }
  ++taken_;
  if (period_ > 0) Follow(Before(0));
  if (!fits_ && taken_ >= search_at_) Search();
}

// The first constant of SplitMix64's finaliser spreads the keys, so that different sets of calls have
// different sums.
uint64_t StepPeriod::DigestOf(uint32_t key) {
  const uint64_t mixed = (uint64_t{key} + 1) * 0xbf58476d1ce4e5b9;
  return mixed ^ mixed >> 32;
}

uint64_t StepPeriod::digest() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < period_; ++i) sum += DigestOf(Before(i).key);
  return sum;
}

void StepPeriod::Follow(const Call& call) {
  const Call& before = Before(period_);
  if (before.key != call.key) {
    if (fits_) search_at_ = taken_ + kNextSearch;
    fits_ = false;
    matched_ = 0;
  } else {
    ++matched_;
  }
  unmatched_ = matched_ >= period_ ? 0 : unmatched_ + 1;
  if (matched_ >= period_) {
    const auto ns = static_cast<double>(call.issued_ns - before.issued_ns);
    step_ns_ += step_ns_ == 0 ? ns : kFollowRate * (ns - step_ns_);
  } else if (unmatched_ > kStepsToResume * period_ + kCallsToResume) {
    period_ = 0;
    step_ns_ = 0;
  }
}

void StepPeriod::Search() {
  // Until a first period is known, searches are frequent and each window is only a little narrower than the
  // one before, since the calls before a program's first step are no part of a period. So the first period is
  // found soon after its third step.
  const size_t narrower = period_ == 0 ? 4 : 2;
  const size_t least = period_ == 0 ? kLeastFirstWindow : kLeastWindow;
  search_at_ = taken_ + search_again_;
  search_again_ = std::min(search_again_ + (period_ == 0 ? search_again_ / 4 : search_again_), kSeldom);
  for (size_t window = std::min(taken_, kTimesSeen * kMaxCalls); window >= least;
       window -= window / narrower) {
    const size_t period = PeriodOf(window);
    if (kTimesSeen * period > window) continue;
    fits_ = true;
    search_again_ = kNextSearch;
    if (period == period_) return;
    period_ = period;
    matched_ = MatchedBefore(period);
    unmatched_ = 0;
    step_ns_ = 0;
    return;
  }
}

size_t StepPeriod::MatchedBefore(size_t period) const {
  size_t matched = 0;
  const size_t most = last_.size() - period;
  while (matched < most && Before(matched).key == Before(matched + period).key) ++matched;
  return matched;
}

size_t StepPeriod::PeriodOf(size_t window) const {
  std::vector<size_t> border(window, 0);
  for (size_t i = 1; i < window; ++i) {
    size_t length = border[i - 1];
    while (length > 0 && Before(i).key != Before(length).key) length = border[length - 1];
    border[i] = length + (Before(i).key == Before(length).key ? 1 : 0);
  }
  return window - border.back();
}

}  // namespace dynamiccl
