// SPDX-License-Identifier: Apache-2.0
#include "tools/advise/step_search.h"

#include <algorithm>

#include "src/base/statistics.h"
#include "src/collective/data_type.h"

namespace dynamiccl {
namespace {

// Fewest calls in a sequence whose repetition is taken for a training step.
constexpr uint64_t kLeastPeriod = 2;

uint64_t Mix(uint64_t value) {
  value *= 0x9e3779b97f4a7c15ULL;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93ULL;
  return value ^ (value >> 32);
}

}  // namespace

bool BetweenTwo(const TraceRecord& call) {
  return call.collective >= kTunableCollectives;
}

uint64_t StepKeyOf(const TraceRecord& call) {
  const uint64_t rest = uint64_t{call.communicator} | uint64_t{call.collective} << 32 |
                        uint64_t{call.data_type} << 40 |
                        uint64_t{static_cast<uint16_t>(call.root_or_peer)} << 48;
  return Mix(call.bytes ^ Mix(rest));
}

void SeenSteps::Take(int64_t number, const TraceRecord& call) {
  if (steps_.empty() || steps_.back().number < number) steps_.push_back({.number = number});
  size_t place = PlaceOf(number);
  if (place == steps_.size() || steps_[place].number != number)
    steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(place), SeenStep{.number = number});
  SeenStep& step = steps_[place];
  if (step.calls++ == 0) step.begin_ns = call.issued_ns;
  step.hash = Mix(step.hash + StepKeyOf(call));
}

size_t SeenSteps::PlaceOf(int64_t number) {
  for (const size_t near : {last_, last_ + 1})
    if (near < steps_.size() && steps_[near].number == number) return last_ = near;
  const auto found = std::ranges::lower_bound(steps_, number, {}, &SeenStep::number);
  return last_ = static_cast<size_t>(found - steps_.begin());
}

std::optional<int64_t> StepDivision::NumberOf(uint64_t place, int64_t mark) const {
  if (marked) return mark < 0 ? std::nullopt : std::optional(mark);
  if (place < skipped) return std::nullopt;
  return static_cast<int64_t>((place - skipped) / calls_of_step);
}

void StepSearch::Take(const TraceRecord& call, int64_t mark) {
  all_bytes_ += static_cast<double>(call.bytes);
  if (BetweenTwo(call)) {
    ++between_two_[static_cast<Collective>(call.collective)];
    between_bytes_ += static_cast<double>(call.bytes);
    return;
  }
  const Recent recent{StepKeyOf(call), call.issued_ns};
  if (recent_.size() < kLongestStep)
    recent_.push_back(recent);
  else
    recent_[collectives_ % kLongestStep] = recent;
  ++collectives_;
  if (mark >= 0) marked_.Take(mark, call);
  if (static_cast<Collective>(call.collective) == Collective::kAllReduce &&
      static_cast<DataType>(call.data_type) == DataType::kInt32)
    ++int32_reduces_[static_cast<int64_t>(call.bytes / sizeof(int32_t))];
}

StepDivision StepSearch::Divide(bool timed) const {
  StepDivision division;
  division.marked = marked_.steps().size() > 1;
  if (division.marked) return division;
  const uint64_t period = Period();
  division.calls_of_step = period == 0 || AllEqual(period) ? collectives_ : period;
  division.skipped = division.calls_of_step == 0 ? 0 : collectives_ % division.calls_of_step;
  const bool one_step = collectives_ - division.skipped == division.calls_of_step;
  if (!timed || !one_step) return division;
  if (const uint64_t paced = PacedCalls(); paced > 0)
    return {.paced = true, .skipped = collectives_ - paced, .calls_of_step = 1};
  return division;
}

// Returns the smallest number n of calls such that the last n calls equal the n calls before them; 0: there
// is none. It takes linear time by the Z algorithm (Gusfield, "Algorithms on Strings, Trees, and Sequences",
// 1997). equal[i] is how many calls agree when the trace, read backwards, is compared with itself shifted by
// i.
uint64_t StepSearch::Period() const {
  const size_t n = recent_.size();
  const auto same = [&](size_t i, size_t j) { return FromEnd(i).key == FromEnd(j).key; };
  std::vector<uint32_t> equal(n, 0);
  for (size_t i = 1, left = 0, right = 0; i < n; ++i) {
    if (i < right) equal[i] = std::min(static_cast<uint32_t>(right - i), equal[i - left]);
    while (i + equal[i] < n && same(equal[i], i + equal[i])) ++equal[i];
    if (i + equal[i] > right) left = i, right = i + equal[i];
    if (i >= kLeastPeriod && equal[i] >= i) return i;
  }
  return 0;
}

// True if the last calls are equal. Such a period does not tell where a step ends.
bool StepSearch::AllEqual(uint64_t last) const {
  for (uint64_t i = 1; i < last; ++i)
    if (FromEnd(i).key != FromEnd(0).key) return false;
  return true;
}

// Returns how many of the last calls are taken for steps of one call. They must be at least kLeastPaced equal
// calls with nearly equal pauses between them, which fill nearly all of the time. Equal buckets of one step
// look different: they come close together, with a long pause after them. Returns 0 if the calls look
// different.
uint64_t StepSearch::PacedCalls() const {
  constexpr uint64_t kLeastPaced = 8;
  constexpr double kMostlyEven = 0.8;
  uint64_t equal = 1;
  while (equal < recent_.size() && FromEnd(equal).key == FromEnd(0).key) ++equal;
  if (equal < kLeastPaced || recent_.empty()) return 0;
  std::vector<double> pauses;
  for (uint64_t back = equal - 1; back > 0; --back)
    pauses.push_back(static_cast<double>(FromEnd(back - 1).issued_ns - FromEnd(back).issued_ns));
  const double median = Median(pauses);
  double all = 0, even = 0, count = 0;
  for (const double pause : pauses) {
    const bool is_even = 2 * pause >= median && pause <= 2 * median;
    all += pause;
    even += is_even ? pause : 0;
    count += is_even ? 1 : 0;
  }
  const bool paced = even > kMostlyEven * all && count > kMostlyEven * static_cast<double>(pauses.size());
  return paced ? equal : 0;
}

}  // namespace dynamiccl
