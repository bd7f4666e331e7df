// SPDX-License-Identifier: Apache-2.0
// Matches cells by size, reduces each to the medians of its arms, and judges every pair of arms.
#include "studies/config_order/config_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace dynamiccl {
namespace {

// Two sizes correspond when they differ by at most this many octaves.
constexpr double kNearestOctaves = 0.5;

// Whether every row that states an algorithm states a protocol too. Imported tables may state only the first.
bool TellsProtocol(const SweepCell& cell) {
  return std::all_of(cell.rows.begin(), cell.rows.end(), [](const Measurement* row) {
    return row->config.algorithm == Algorithm::kUndefined || row->config.protocol != Protocol::kUndefined;
  });
}

// Median time of each arm at its best number of channels. The default row is no arm, because nothing was
// forced in it.
std::map<std::string, double> ArmsOf(const SweepCell& cell, bool with_protocol) {
  std::map<std::string, double> arms;
  for (const Measurement* row : cell.rows) {
    if (row->is_default || row->config.algorithm == Algorithm::kUndefined) continue;
    const std::string arm =
        with_protocol ? fmt::format("{} {}", Name(row->config.algorithm), Name(row->config.protocol))
                      : std::string(Name(row->config.algorithm));
    const std::vector<double> samples(row->microseconds.begin(), row->microseconds.end());
    const double median = Summarize(samples).median;
    const auto [place, is_new] = arms.emplace(arm, median);
    if (!is_new) place->second = std::min(place->second, median);
  }
  return arms;
}

// Distance of two sizes in octaves.
double Octaves(uint64_t bytes, double other) {
  return std::abs(std::log2(static_cast<double>(bytes) / other));
}

// Accumulates the agreement of cells. CompareOrder owns one on its stack and gives it every cell of the
// second file.
class Comparison {
 public:
  explicit Comparison(const OrderOptions& options) : options_(options) {}

  // Compares `other` with the candidate of the nearest size. `candidates` are the cells of the first file on
  // the corresponding topology.
  void Take(const std::vector<const SweepCell*>& candidates, const SweepCell& other) {
    const double wanted = static_cast<double>(other.bytes) * options_.size_scale;
    const SweepCell* nearest = nullptr;
    for (const SweepCell* cell : candidates) {
      if (cell->collective != other.collective) continue;
      if (nearest == nullptr || Octaves(cell->bytes, wanted) < Octaves(nearest->bytes, wanted))
        nearest = cell;
    }
    if (nearest == nullptr || Octaves(nearest->bytes, wanted) > kNearestOctaves) {
      ++result_.unmatched_cells;
    } else {
      CompareCells(*nearest, other);
    }
  }

  OrderAgreement result() && { return std::move(result_); }

 private:
  // Judges every pair of arms that both cells have.
  void CompareCells(const SweepCell& cell, const SweepCell& other) {
    const bool with_protocol = TellsProtocol(cell) && TellsProtocol(other);
    const auto arms = ArmsOf(cell, with_protocol);
    auto other_arms = ArmsOf(other, with_protocol);
    std::erase_if(other_arms, [&](const auto& arm) { return !arms.contains(arm.first); });
    if (other_arms.size() < 2) return;
    ++result_.cells;
    for (auto a = other_arms.begin(); a != other_arms.end(); ++a) {
      for (auto b = std::next(a); b != other_arms.end(); ++b) {
        Judge({cell.topology, cell.collective, cell.bytes, other.bytes, a->first, b->first,
               arms.at(a->first) / arms.at(b->first), a->second / b->second});
      }
    }
  }

  // Files one pair. The limit applies to the logarithm of a ratio, so that a/b and b/a are treated alike.
  void Judge(ArmPair pair) {
    const double limit = std::log1p(options_.tie);
    const double mine = std::log(pair.ratio);
    const double theirs = std::log(pair.other_ratio);
    const bool tie = std::abs(mine) < limit || std::abs(theirs) < limit;
    auto& list = tie ? result_.ties : mine * theirs > 0 ? result_.concordant : result_.discordant;
    list.push_back(std::move(pair));
  }

  const OrderOptions& options_;
  OrderAgreement result_;
};

// The cells on `topology`, or an error that lists the known topologies.
Result<std::vector<const SweepCell*>> CellsOn(const std::vector<SweepCell>& cells,
                                              const std::string& topology) {
  std::vector<const SweepCell*> found;
  for (const SweepCell& cell : cells) {
    if (cell.topology == topology) found.push_back(&cell);
  }
  if (!found.empty()) return found;
  std::string known;
  for (const SweepCell& cell : cells) {
    if (known.find(cell.topology) == std::string::npos) known += (known.empty() ? "" : ", ") + cell.topology;
  }
  return WithHint(MakeError(ErrorKind::kNotFound, "no topology '{}' among the measurements", topology),
                  "there are: " + known);
}

}  // namespace

double OrderAgreement::Tau() const {
  const auto same = static_cast<double>(concordant.size());
  const auto reversed = static_cast<double>(discordant.size());
  return same + reversed == 0 ? 0 : (same - reversed) / (same + reversed);
}

Result<OrderAgreement> CompareOrder(const MeasurementFile& first, const MeasurementFile& second,
                                    const OrderOptions& options) {
  const auto cells = CellsOf(first);
  const auto other_cells = CellsOf(second);
  Comparison comparison(options);
  for (const auto& [topology, other_topology] : options.topologies) {
    DYNAMICCL_TRY(const auto candidates, CellsOn(cells, topology));
    DYNAMICCL_TRY(const auto others, CellsOn(other_cells, other_topology));
    for (const SweepCell* other : others) comparison.Take(candidates, *other);
  }
  return std::move(comparison).result();
}

}  // namespace dynamiccl
