// SPDX-License-Identifier: Apache-2.0
// Runs the loop of a real sweep, but with the times of a recorded sweep.
#include "tools/bench/rehearsed_sweep.h"

#include <algorithm>
#include <random>
#include <tuple>

#include "tools/bench/chosen_sweep.h"
#include "tools/bench/sweep_slices.h"

namespace dynamiccl {
namespace {

// The least number of seconds that one topology gets before another has its turn. It is small because a
// rehearsal starts no ranks, so a turn costs nothing to begin.
constexpr double kShortestSlice = 0.02;

// Returns the repeats of even index. A visit uses kVisitRepeats of them; the last ones are dropped if they
// are fewer.
std::vector<float> EvenRepeats(const std::vector<float>& repeats) {
  std::vector<float> even;
  for (size_t i = 0; i < repeats.size(); i += 2) even.push_back(repeats[i]);
  even.resize(even.size() / kVisitRepeats * kVisitRepeats);
  return even;
}

// Returns the recorded times of one topology's cells instead of measuring. RehearseSweep owns one object for
// each topology. Cells with too few repeats to split into halves are left out.
class RecordedTopology : public CellTimer {
 public:
  RecordedTopology(const MeasurementFile& recorded, const MeasurementContext& context, uint64_t seed)
      : random_(seed) {
    for (const Measurement& row : recorded.rows) {
      if (row.topology == context.topology && row.microseconds.size() >= 2 * kVisitRepeats) Add(row, context);
    }
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return OrderOf(a.cell) < OrderOf(b.cell); });
    for (const Entry& entry : entries_) cells.push_back(entry.cell);
    samples.resize(cells.size());
  }

  // Returns the next recorded repeats of the cell. After the last repeat it starts again with the first.
  Result<CellVisit> Take(size_t cell) override {
    const std::vector<float>& all = entries_[cell].repeats;
    CellVisit visit{{}, VisitSeconds(all.front(), samples[cell].empty())};
    for (int i = 0; i < kVisitRepeats; ++i)
      visit.microseconds.push_back(all[(samples[cell].size() + static_cast<size_t>(i)) % all.size()]);
    return visit;
  }
  // A rehearsal has only one rank, so there is nothing to replace.
  Status TakeFirstRanks(std::vector<double>&) override { return {}; }

  // Seconds that the visits of all cells take if each recorded repeat is used once.
  double SecondsOfAll() const {
    double seconds = 0;
    for (const Entry& entry : entries_) {
      for (size_t i = 0; i < entry.repeats.size(); i += kVisitRepeats)
        seconds += VisitSeconds(entry.repeats.front(), i == 0);
    }
    return seconds;
  }
  // The largest number of repeats of a cell.
  int repeats() const {
    size_t most = 0;
    for (const Entry& entry : entries_) most = std::max(most, entry.repeats.size());
    return static_cast<int>(most);
  }

  std::vector<PricedCell> cells;
  std::vector<std::vector<float>> samples;

 private:
  struct Entry {
    PricedCell cell;
    std::vector<float> repeats;
  };

  // Sort key that orders cells by collective and size, with the default first.
  static std::tuple<Collective, uint64_t, bool> OrderOf(const PricedCell& cell) {
    return {cell.cell.collective, cell.cell.bytes, !cell.cell.is_default()};
  }

  void Add(const Measurement& row, const MeasurementContext& context) {
    const PlannedCell cell{row.collective, row.bytes, row.is_default ? kLeaveNcclAlone : row.config};
    std::vector<float> repeats = EvenRepeats(row.microseconds);
    // std::shuffle is not used: its draws differ between standard libraries.
    for (size_t i = repeats.size(); i > 1; --i) std::swap(repeats[i - 1], repeats[random_() % i]);
    entries_.push_back({PriceCell(context.model, cell, row.config), std::move(repeats)});
  }

  std::vector<Entry> entries_;
  std::mt19937_64 random_;
};

}  // namespace

Result<MeasurementFile> RehearseSweep(const MeasurementFile& recorded, const ChoiceOptions& options,
                                      double budget_s) {
  std::vector<RecordedTopology> topologies;
  for (const MeasurementContext& context : recorded.contexts)
    topologies.emplace_back(recorded, context, options.seed);
  std::vector<SweptTopology> states(topologies.size());
  while (const auto slice = NextSlice(states, options.order, budget_s, kShortestSlice)) {
    RecordedTopology& topology = topologies[slice->topology];
    ChoiceOptions choice = options;
    choice.repeats = std::min(options.repeats, topology.repeats());
    DYNAMICCL_TRY(const ChosenSweepResult result,
                  MeasureChosen(topology.cells, choice, slice->seconds, topology, topology.samples,
                                [](size_t, const CellVisit&) { return Status(); }));
    states[slice->topology] = {true, result.complete, result.promise};
    budget_s -= result.seconds;
  }
  MeasurementFile file{recorded.library, recorded.machine, "", recorded.contexts, {}};
  for (size_t t = 0; t < topologies.size(); ++t) {
    for (size_t i = 0; i < topologies[t].cells.size(); ++i) {
      if (topologies[t].samples[i].empty()) continue;
      file.rows.push_back(
          RowOf(recorded.contexts[t].topology, topologies[t].cells[i], topologies[t].samples[i]));
    }
  }
  return file;
}

double RehearsalSeconds(const MeasurementFile& recorded) {
  double seconds = 0;
  for (const MeasurementContext& context : recorded.contexts)
    seconds += RecordedTopology(recorded, context, 1).SecondsOfAll();
  return seconds;
}

}  // namespace dynamiccl
