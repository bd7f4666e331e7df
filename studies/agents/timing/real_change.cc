// SPDX-License-Identifier: Apache-2.0
// Computes medians for each kind of call, before and after the alarm.
#include "studies/agents/timing/real_change.h"

#include <algorithm>
#include <array>
#include <map>

#include "src/base/statistics.h"

namespace dynamiccl::agents {
namespace {

// ShareReallyChanged tests one call in this many.
constexpr size_t kEvery = 50;

// The calls from `from` to before `to`.
struct Span {
  size_t from = 0;
  size_t to = 0;
};

// The calls before the alarm that are compared.
Span Before(size_t call) {
  if (call < 3 * kAroundAlarm) return {0, std::min(call / 2, kAroundAlarm)};
  return {call - 2 * kAroundAlarm, call - kAroundAlarm};
}

// Median over the kinds of calls of the ratio of their times in `after` and `before`; 1 if no kind occurs in
// both.
template <typename Time>
double RatioOf(const TimingRun& run, const Span& before, const Span& after, Time time) {
  std::map<uint64_t, std::array<std::vector<double>, 2>> times;
  for (size_t i = before.from; i < before.to; ++i) times[run.calls[i].key][0].push_back(time(run.calls[i]));
  for (size_t i = after.from; i < after.to; ++i) times[run.calls[i].key][1].push_back(time(run.calls[i]));
  std::vector<double> ratios;
  for (auto& [key, both] : times) {
    if (!both[0].empty() && !both[1].empty())
      ratios.push_back(MedianInPlace(both[1]) / MedianInPlace(both[0]));
  }
  return ratios.empty() ? 1 : MedianInPlace(ratios);
}

bool IsReal(double ratio) {
  return ratio > kRealChange || ratio < 1 / kRealChange;
}

}  // namespace

bool ReallyChanged(const TimingRun& run, size_t call) {
  const Span before = Before(call), after{call, std::min(call + kAroundAlarm, run.calls.size())};
  return IsReal(RatioOf(run, before, after, [](const TimedCall& c) { return c.transfer_ns; })) ||
         IsReal(RatioOf(run, before, after, [](const TimedCall& c) { return c.transfer_ns + c.skew_ns; }));
}

double ShareReallyChanged(const TimingRun& run) {
  size_t places = 0, changed = 0;
  for (size_t call = kEvery; call < run.calls.size(); call += kEvery) {
    ++places;
    changed += ReallyChanged(run, call) ? 1 : 0;
  }
  return places == 0 ? 0 : static_cast<double>(changed) / static_cast<double>(places);
}

}  // namespace dynamiccl::agents
