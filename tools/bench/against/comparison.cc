// SPDX-License-Identifier: Apache-2.0
// Measures one call with several libraries, called sides. A first, short measurement decides how many calls
// each side makes in a round. Then every round times all sides, each round beginning with another side.
#include "tools/bench/against/comparison.h"

#include <algorithm>

#include "src/base/statistics.h"
#include "tools/bench/collective_bench.h"
#include "tools/bench/copy_limit.h"

namespace dynamiccl {
namespace {

// Milliseconds of one probe of the machine's copy rate.
constexpr double kProbeMilliseconds = 2;
// A round is void if the copy rates before and after it differ by more than this factor.
constexpr double kSteadyRatio = 1.3;

// Numbers of calls that one side makes in a round.
struct Burst {
  int iterations = 1;
  int singles = 1;
};

// Holds what one round measured: the times of each side, the copy rate, and whether the machine was steady.
struct RoundResult {
  std::vector<std::optional<SideTimes>> times;
  double copy_gbps = 0;
  bool steady = true;
};

// Returns how many calls fit in `burst_ms` milliseconds if one takes `call_us` microseconds: 2 to 20000 calls
// back to back, and half as many single calls (at most 1000).
Burst BurstFor(double call_us, double burst_ms) {
  constexpr double kMax = 20000;
  const double fitting = burst_ms * 1e3 / std::max(call_us, 0.1);
  return {static_cast<int>(std::clamp(fitting, 2.0, kMax)),
          static_cast<int>(std::clamp(fitting / 2, 2.0, 1000.0))};
}

// The measurement of one collective at one size. CompareCall owns it on its stack; `sides` and `options` must
// outlive it.
class Cell {
 public:
  Cell(std::vector<Side>& sides, const ComparedCall& call, int n_ranks, const ComparisonOptions& options)
      : sides_(sides), options_(options), bursts_(sides.size()) {
    result_.call = call;
    result_.n_ranks = n_ranks;
  }

  Result<CellResult> Measure();

 private:
  Status Prepare();
  Result<RoundResult> Round(int number);
  void Keep(const RoundResult& round);

  std::vector<Side>& sides_;
  const ComparisonOptions& options_;
  std::vector<Burst> bursts_;
  std::vector<double> copies_;
  CellResult result_;
};

// Prepares the call on every side (library) and determines how many calls each side makes in a round. A side
// whose library lacks the call is left out, with the reason. The first side, hostccl, must have the call.
Status Cell::Prepare() {
  for (size_t i = 0; i < sides_.size(); ++i) {
    SideResult& side = result_.sides.emplace_back();
    side.name = sides_[i].name();
    const auto config = sides_[i].SetUp(result_.call);
    if (!config && (i == 0 || config.error().kind != ErrorKind::kUnsupported))
      return tl::unexpected<Error>(config.error());
    if (!config) {
      side.missing = config.error().message;
      continue;
    }
    side.config = *config;
    DYNAMICCL_TRY(const SideTimes first, sides_[i].Time(2, 1, 0));
    DYNAMICCL_TRY(const SideTimes look, sides_[i].Time(BurstFor(first.microseconds, 2).iterations, 0, 0));
    bursts_[i] = BurstFor(look.microseconds, options_.burst_ms);
  }
  return {};
}

// Times every side once. Each round starts with another side.
Result<RoundResult> Cell::Round(int number) {
  const ComparedCall& call = result_.call;
  const double footprint =
      FootprintBytes(call.collective, call.layout, ElementBytes(call.type), result_.n_ranks);
  RoundResult round{.times = std::vector<std::optional<SideTimes>>(sides_.size())};
  DYNAMICCL_TRY(const CopyRates before, sides_[0].Copy(footprint, kProbeMilliseconds));
  for (size_t position = 0; position < sides_.size(); ++position) {
    const size_t i = (position + static_cast<size_t>(number)) % sides_.size();
    if (!result_.sides[i].missing.empty()) continue;
    DYNAMICCL_TRY(round.times[i], sides_[i].Time(bursts_[i].iterations, 2, bursts_[i].singles));
  }
  DYNAMICCL_TRY(const CopyRates after, sides_[0].Copy(footprint, kProbeMilliseconds));
  round.copy_gbps = (before.limit + after.limit) / 2;
  round.steady =
      std::max(before.steady, after.steady) <= kSteadyRatio * std::min(before.steady, after.steady);
  return round;
}

// Adds the times of a round to the result.
void Cell::Keep(const RoundResult& round) {
  copies_.push_back(round.copy_gbps);
  for (size_t i = 0; i < round.times.size(); ++i) {
    if (!round.times[i]) continue;
    result_.sides[i].microseconds.push_back(round.times[i]->microseconds);
    result_.sides[i].p50_us.push_back(round.times[i]->p50_us);
    result_.sides[i].p99_us.push_back(round.times[i]->p99_us);
  }
}

Result<CellResult> Cell::Measure() {
  DYNAMICCL_CHECK_OK(Prepare());
  std::vector<RoundResult> disturbed;
  int kept = 0;
  for (int number = 0; kept < options_.rounds && number < 2 * options_.rounds; ++number) {
    DYNAMICCL_TRY(RoundResult round, Round(number));
    if (!round.steady) {
      disturbed.push_back(std::move(round));
      continue;
    }
    Keep(round);
    ++kept;
  }
  result_.void_rounds = static_cast<int>(disturbed.size());
  for (; kept < options_.rounds && !disturbed.empty(); ++kept) {
    Keep(disturbed.back());
    disturbed.pop_back();
  }
  result_.copy_limit_gbps = CopyLimit(result_.call.collective, result_.n_ranks, false, Median(copies_));
  return std::move(result_);
}

// Returns theirs / ours, or nothing if one of the two times is missing.
std::optional<double> Ratio(double theirs, double ours) {
  if (theirs <= 0 || ours <= 0) return std::nullopt;
  return theirs / ours;
}

}  // namespace

double SideResult::time_us() const {
  return Median(microseconds);
}
double SideResult::p50() const {
  return Median(p50_us);
}
double SideResult::p99() const {
  return Median(p99_us);
}

double CellResult::algorithm_gbps(const SideResult& side) const {
  const double bytes =
      AlgorithmBytes(call.collective, call.layout.argument, ElementBytes(call.type), n_ranks);
  return side.time_us() > 0 ? bytes * 1e-3 / side.time_us() : 0;
}

std::optional<double> CellResult::TimeRatio(const SideResult& side) const {
  return Ratio(side.time_us(), sides.front().time_us());
}

std::optional<double> CellResult::SingleRatio(const SideResult& side) const {
  return Ratio(side.p50(), sides.front().p50());
}

Result<CellResult> CompareCall(std::vector<Side>& sides, const ComparedCall& call, int n_ranks,
                               const ComparisonOptions& options) {
  return Cell(sides, call, n_ranks, options).Measure();
}

}  // namespace dynamiccl
