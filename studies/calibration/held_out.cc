// SPDX-License-Identifier: Apache-2.0
// For each left-out group: fit a system to the other cells, predict the group, and compare with measured
// times and baselines.
#include "studies/calibration/held_out.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <tuple>

#include "src/base/statistics.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/stated_interval.h"

namespace dynamiccl {
namespace {

// Least number of rank counts or sizes: one is left out, and the fit needs two others.
constexpr size_t kLeast = 3;

// Key of the cells that differ only in rank count or size.
using Line = std::tuple<Collective, Algorithm, Protocol, uint8_t>;
Line LineOf(const TimedCell& cell) {
  return {cell.collective, cell.config.algorithm, cell.config.protocol, cell.config.channels};
}

// Microseconds by rank count or by bytes.
using Curve = std::map<uint64_t, double>;

// Value at `place` of the straight line, in logarithms, through two points.
double AtLine(double low_place, double low, double high_place, double high, double place) {
  const double share = std::log(place / low_place) / std::log(high_place / low_place);
  return std::exp((1 - share) * std::log(low) + share * std::log(high));
}

double AtLine(const Curve::value_type& one, const Curve::value_type& other, uint64_t place) {
  return AtLine(static_cast<double>(one.first), one.second, static_cast<double>(other.first), other.second,
                static_cast<double>(place));
}

// Returns the value on the line between the curve's neighbours of `place`. If a neighbour is missing, returns
// nothing without `ends`. With `ends`, returns the value on the line through the two nearest points, or the
// value of the only point.
std::optional<double> OnLine(const Curve& curve, uint64_t place, bool ends) {
  const auto above = curve.upper_bound(place);
  const bool has_below = above != curve.begin();
  if (above != curve.end() && has_below) return AtLine(*std::prev(above), *above, place);
  if (!ends || curve.empty()) return std::nullopt;
  if (curve.size() == 1) return curve.begin()->second;
  if (has_below) return AtLine(*std::prev(above, 2), *std::prev(above), place);
  return AtLine(*above, *std::next(above), place);
}

double ErrorOf(double predicted, double measured) {
  return std::fabs(predicted / measured - 1);
}

// The evaluation of one system. EvaluateHeldOut owns it on its stack; the system must outlive it.
class Evaluation {
 public:
  Evaluation(const TimedSystem& system, const FitOptions& options, Intervals intervals)
      : system_(system),
        options_(options),
        intervals_(intervals),
        ranks_per_node_(RanksPerNode(system.cells)) {
    const System shape{.ranks_per_node = ranks_per_node_};
    for (const TimedCell& cell : system.cells) {
      if (!FillsNodes(shape, cell)) {
        result_.has_partial_nodes = true;
        continue;
      }
      counts_.insert(cell.n_ranks);
      sizes_.insert(cell.bytes);
      by_ranks_[{LineOf(cell), cell.bytes}][static_cast<uint64_t>(cell.n_ranks)] = cell.us;
      by_size_[{LineOf(cell), cell.n_ranks}][cell.bytes] = cell.us;
    }
  }

  Result<HeldOutResult> Run() {
    if (counts_.size() < kLeast && sizes_.size() < kLeast) {
      return MakeError(ErrorKind::kUnsupported,
                       "{}: {} rank counts and {} sizes, {} are needed to leave one out", system_.name,
                       counts_.size(), sizes_.size(), kLeast);
    }
    result_.system = system_.name;
    result_.rank_counts.assign(counts_.begin(), counts_.end());
    if (counts_.size() >= kLeast) {
      for (const int count : counts_) {
        DYNAMICCL_CHECK_OK(
            LeaveOut(PlaceOf(count), [&](const TimedCell& cell) { return cell.n_ranks == count; }));
      }
    }
    for (const uint64_t size : sizes_) {
      if (size == *sizes_.begin() || size == *sizes_.rbegin()) continue;
      DYNAMICCL_CHECK_OK(LeaveOut(LeftOut::kSize, [&](const TimedCell& cell) { return cell.bytes == size; }));
    }
    return std::move(result_);
  }

 private:
  LeftOut PlaceOf(int n_ranks) const {
    if (n_ranks == *counts_.rbegin()) return LeftOut::kLargest;
    return n_ranks == *counts_.begin() ? LeftOut::kSmallest : LeftOut::kBetween;
  }

  // Fits without the cells for which the predicate holds and judges them.
  Status LeaveOut(LeftOut kind, const std::function<bool(const TimedCell&)>& is_left_out) {
    std::vector<TimedCell> others;
    for (const TimedCell& cell : system_.cells) {
      if (!is_left_out(cell)) others.push_back(cell);
    }
    // Without the left-out cells it may be unknown how many ranks a node has. The group then cannot be
    // predicted.
    if (others.empty() || RanksPerNode(others) != ranks_per_node_) return {};
    DYNAMICCL_TRY(const System fitted, FitSystem(system_.name, others, options_));
    std::map<int, std::vector<const TimedCell*>> judged;
    for (const TimedCell& cell : system_.cells) {
      if (is_left_out(cell) && FillsNodes(fitted, cell)) judged[cell.n_ranks].push_back(&cell);
    }
    for (const auto& [n_ranks, cells] : judged) JudgeAll(kind, fitted, n_ranks, cells);
    return intervals_ == Intervals::kJudged ? JudgeIntervals(kind, fitted, others, judged) : Status();
  }

  // Counts the left-out cells that lie inside the intervals that the fit states.
  Status JudgeIntervals(LeftOut kind, System fitted, const std::vector<TimedCell>& others,
                        const std::map<int, std::vector<const TimedCell*>>& judged) {
    if (kind == LeftOut::kSize) {
      StateSeenIntervals(fitted, others);
    } else {
      DYNAMICCL_CHECK_OK(StateErrors(fitted, others, options_));
    }
    for (const auto& [n_ranks, cells] : judged) {
      const CollectiveTimes times(fitted, n_ranks);
      for (const TimedCell* const cell : cells) {
        const auto width = LogWidth(fitted, cell->collective, cell->bytes, n_ranks, cell->n_nodes);
        const double predicted = times.Microseconds(cell->collective, cell->bytes, cell->config);
        if (!width || predicted <= 0) continue;
        Coverage& coverage = result_.coverage[kind];
        ++coverage.judged;
        coverage.inside += std::fabs(std::log(cell->us / predicted)) <= *width;
        coverage.widths.push_back(*width);
      }
    }
    return {};
  }

  // Judges cells of one rank count.
  void JudgeAll(LeftOut kind, const System& fitted, int n_ranks, const std::vector<const TimedCell*>& cells) {
    const CollectiveTimes times(fitted, n_ranks);
    const CollectiveTimes formulas(fitted, n_ranks, 0, CollectiveTimes::Residuals::kIgnored);
    std::map<std::pair<Collective, uint64_t>, std::vector<const TimedCell*>> calls;
    for (const TimedCell* const cell : cells) {
      Judge(*cell, times, formulas, kind);
      calls[{cell->collective, cell->bytes}].push_back(cell);
    }
    if (kind == LeftOut::kSize && counts_.size() >= kLeast) return;
    for (const auto& [call, configs] : calls) JudgeOrder(configs, times);
  }

  // Adds one cell's errors. A cell for which the baseline has no value is not judged, so that all are
  // compared on the same cells.
  void Judge(const TimedCell& cell, const CollectiveTimes& times, const CollectiveTimes& formulas,
             LeftOut kind) {
    const double predicted = times.Microseconds(cell.collective, cell.bytes, cell.config);
    Curve ranks = by_ranks_.at({LineOf(cell), cell.bytes});
    ranks.erase(static_cast<uint64_t>(cell.n_ranks));
    const auto line = OnLine(ranks, static_cast<uint64_t>(cell.n_ranks), true);
    Curve sizes = by_size_.at({LineOf(cell), cell.n_ranks});
    sizes.erase(cell.bytes);
    const auto between = OnLine(sizes, cell.bytes, false);
    // A cell counts only if the baseline that knows the same cells as the fit has a value: other sizes if a
    // size is left out, otherwise other rank counts.
    if (predicted <= 0 || !(kind == LeftOut::kSize ? between : line)) return;
    HeldOutErrors& errors = result_.errors[kind];
    errors.system.push_back(ErrorOf(predicted, cell.us));
    errors.formulas.push_back(
        ErrorOf(formulas.Microseconds(cell.collective, cell.bytes, cell.config), cell.us));
    if (line) errors.by_ranks.push_back(ErrorOf(*line, cell.us));
    if (between) errors.by_size.push_back(ErrorOf(*between, cell.us));
    if (cell.log_spread > 0) errors.repeats.push_back(std::exp(cell.log_spread) - 1);
  }

  // Compares the predicted and measured order of one call's configs.
  void JudgeOrder(const std::vector<const TimedCell*>& cells, const CollectiveTimes& times) {
    const TimedCell* own = nullptr;
    std::vector<std::pair<double, double>> forced;  // predicted, measured
    for (const TimedCell* const cell : cells) {
      const double predicted = times.Microseconds(cell->collective, cell->bytes, cell->config);
      if (cell->config.algorithm == Algorithm::kUndefined) {
        own = cell;
      } else if (predicted > 0) {
        forced.emplace_back(predicted, cell->us);
      }
    }
    if (forced.size() < 2) return;
    ConfigOrder& order = result_.order;
    ++order.calls;
    double best = forced.front().second;
    for (const auto& one : forced) best = std::min(best, one.second);
    const double picked = std::min_element(forced.begin(), forced.end())->second;
    order.picked.push_back(picked / best - 1);
    if (own != nullptr) order.library.push_back(std::max(0.0, own->us / best - 1));
    for (size_t i = 0; i < forced.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const double measured = forced[i].second - forced[j].second;
        if (measured == 0) continue;
        ++order.pairs;
        if ((forced[i].first - forced[j].first) * measured > 0) ++order.agreeing;
      }
    }
  }

  const TimedSystem& system_;
  FitOptions options_;
  Intervals intervals_;
  int ranks_per_node_;
  std::set<int> counts_;
  std::set<uint64_t> sizes_;
  std::map<std::pair<Line, uint64_t>, Curve> by_ranks_;
  std::map<std::pair<Line, int>, Curve> by_size_;
  HeldOutResult result_;
};

}  // namespace

ErrorSummary SummarizeErrors(std::vector<double> errors) {
  return {.cells = errors.size(), .median = MedianInPlace(errors), .mean = Mean(errors)};
}

const char* Name(LeftOut left_out) {
  switch (left_out) {
    case LeftOut::kBetween:
      return "rank count between";
    case LeftOut::kLargest:
      return "largest rank count";
    case LeftOut::kSmallest:
      return "smallest rank count";
    default:
      return "size";
  }
}

double ConfigOrder::Tau() const {
  if (pairs == 0) return 0;
  return (2 * static_cast<double>(agreeing) - static_cast<double>(pairs)) / static_cast<double>(pairs);
}

void Pool(HeldOutResult& into, const HeldOutResult& one) {
  const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const auto& [left_out, errors] : one.errors) {
    HeldOutErrors& all = into.errors[left_out];
    append(all.system, errors.system);
    append(all.formulas, errors.formulas);
    append(all.by_ranks, errors.by_ranks);
    append(all.by_size, errors.by_size);
    append(all.repeats, errors.repeats);
  }
  for (const auto& [left_out, coverage] : one.coverage) {
    Coverage& all = into.coverage[left_out];
    all.judged += coverage.judged;
    all.inside += coverage.inside;
    append(all.widths, coverage.widths);
  }
  into.has_partial_nodes = into.has_partial_nodes || one.has_partial_nodes;
  into.order.calls += one.order.calls;
  into.order.pairs += one.order.pairs;
  into.order.agreeing += one.order.agreeing;
  append(into.order.picked, one.order.picked);
  append(into.order.library, one.order.library);
  std::set<int> counts(into.rank_counts.begin(), into.rank_counts.end());
  counts.insert(one.rank_counts.begin(), one.rank_counts.end());
  into.rank_counts.assign(counts.begin(), counts.end());
}

Result<HeldOutResult> EvaluateHeldOut(const TimedSystem& system, const FitOptions& options,
                                      Intervals intervals) {
  return Evaluation(system, options, intervals).Run();
}

}  // namespace dynamiccl
