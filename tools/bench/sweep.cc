// SPDX-License-Identifier: Apache-2.0
// Times cells (a config for one collective and size) by forcing each config through the sweep's tuner plugin.
//
// A sweep in rounds first takes one untimed sample of every cell, which makes the connections and determines
// how many calls a timed sample has. Then each round times every cell, group by group. A group is one
// collective and size. The machine's copy rate is measured between groups. A group is measured again if the
// copy rate changed during it, provided that the budget allows. After each group the sweep computes anew how
// many rounds fit, from the time that the groups took so far. The samples alone do not show this time: on a
// busy machine barriers and the measuring of the copy rate take longer than the calls.
//
// A chosen sweep instead measures one cell at a time, in the order of cell_choice.h. It measures the copy
// rate before and after each cell.
#include "tools/bench/sweep.h"

#include <algorithm>
#include <numeric>

#include "src/base/clock.h"
#include "src/cost_model/tuner_constants.h"
#include "tools/bench/cell_choice.h"
#include "tools/bench/copy_limit.h"
#include "tools/bench/forced_config.h"
#include "tools/bench/sweep_pace.h"
#include "tools/bench/sweep_plan.h"

namespace dynamiccl {
namespace {

// Bytes, over all ranks together, with which the copy rate is measured. They exceed a core's own cache, so
// that another program on the machine is noticed.
constexpr double kProbeBytes = 16 << 20;
// The machine counts as changed if two copy rates differ by more than this factor.
constexpr double kSteadyRatio = 1.3;
// A group (one collective and size) is measured again if the machine's copy rate changed meanwhile, but at
// most this many times in all. The group then keeps its last measurement, so that a machine that is never
// quiet cannot hold up the sweep for ever. The sweep's result counts how many measurements were disturbed.
constexpr int kMaxAttempts = 3;

// The (algorithm, protocol) pairs that NCCL's cost table offers: NCCL gives impossible ones a negative time.
ConfigMask MaskOf(const CostTable& table) {
  ConfigMask mask;
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      mask.set(ConfigIndex(algorithm, protocol), table.at(algorithm, protocol) >= 0);
    }
  }
  return mask;
}

CostTable TableOf(const dynamicclSweepView_t& view) {
  CostTable table;
  for (size_t a = 0; a < kAlgorithms; ++a) {
    for (size_t p = 0; p < kProtocols; ++p) table.microseconds[a][p] = view.table[a][p];
  }
  return table;
}

// One sweep on one rank. RunSweep or RunChosenSweep owns it on its stack. Most methods are collective: all
// ranks call them in the same order.
class Sweep : private CellTimer {
 public:
  Sweep(BenchSession& session, const SweepOptions& options, ForcedConfig tuner)
      : session_(session), options_(options), tuner_(std::move(tuner)), probe_(session, kProbeBytes) {}

  Result<SweepResult> Run();
  Result<ChosenSweepResult> RunChosen(const ChoiceOptions& choice, const std::vector<Measurement>& known,
                                      const SweepObserver& observer);

 private:
  Result<CellVisit> Take(size_t cell) override;
  Status TakeFirstRanks(std::vector<double>& values) override;
  Status Connect(PlannedCell& cell);
  Result<CollectiveConfig> DefaultOf(const PlannedCell& cell);
  Result<std::vector<PricedCell>> PricedCells();
  Result<std::vector<std::vector<float>>> KnownSamples(const std::vector<PricedCell>& cells,
                                                       const std::vector<Measurement>& known);
  Status Prepare();
  Result<CostTable> TableFor(Collective collective, uint64_t bytes);
  Status Calibrate();
  Status Round(int round);
  Result<bool> Attempt(size_t begin, size_t end, std::vector<double>& times);
  bool MayMeasureAgain(size_t begin, size_t end) const;
  Status LookAtClock();
  double BudgetLeft() const { return options_.budget_s * 1e6 - spent_us_; }
  int RoundsWith(double rest_us) const;
  void TellCalibrated(size_t done) const;
  void TellMeasured(size_t done) const;
  Status Group(size_t begin, size_t end, int round, std::vector<double>& times);
  Result<double> Time(const PlannedCell& cell);
  BenchCall CallOf(Collective collective, uint64_t bytes) const;
  Result<SweepResult> Collect();

  BenchSession& session_;
  const SweepOptions& options_;
  ForcedConfig tuner_;
  CostModelInput model_;
  std::byte* send_ = nullptr;
  std::byte* receive_ = nullptr;
  std::vector<PlannedCell> cells_;
  std::vector<bool> connected_;
  // Microseconds of one call: samples_[round][cell].
  std::vector<std::vector<double>> samples_;
  SweepPace pace_;
  // The time at which Run() began, in nanoseconds of CLOCK_MONOTONIC. spent_us_ has the microseconds from
  // then until the last LookAtClock(), equal on all ranks.
  int64_t begun_ns_ = 0;
  double spent_us_ = 0;
  // The copy rate that was measured last, in GB/s.
  double copy_gbps_ = 0;
  // Number of rounds that have begun.
  int begun_ = 0;
  int disturbed_ = 0;
  CopyProbe probe_;
};

// Returns a call in float32 whose size, as NCCL counts it over all ranks, is `bytes`.
BenchCall Sweep::CallOf(Collective collective, uint64_t bytes) const {
  const bool per_rank = collective == Collective::kAllGather || collective == Collective::kReduceScatter;
  const uint64_t parts = per_rank ? static_cast<uint64_t>(session_.place().n_ranks) : 1;
  return {.collective = static_cast<TestedCollective>(collective),
          .count = bytes / sizeof(float) / parts,
          .send = send_,
          .receive = receive_};
}

// Returns the library's cost table for a call. To see the table, it issues the call with nothing forced.
Result<CostTable> Sweep::TableFor(Collective collective, uint64_t bytes) {
  tuner_.ForceNothing();
  const int before = tuner_.View().questions;
  DYNAMICCL_CHECK_OK(session_.Issue(CallOf(collective, bytes)));
  DYNAMICCL_CHECK_OK(session_.device().Synchronize());
  const dynamicclSweepView_t view = tuner_.View();
  if (view.questions > before) return TableOf(view);
  return WithHint(
      MakeError(ErrorKind::kUnavailable, "the library did not ask the sweep's tuner"),
      "start it with `dynamiccl sweep`, which sets NCCL_TUNER_PLUGIN; NCCL 2.28 or later is needed");
}

// Allocates buffers, finds out which configs the library offers, and lists the cells to measure.
Status Sweep::Prepare() {
  const uint64_t largest = *std::max_element(options_.sizes.begin(), options_.sizes.end());
  send_ = options_.send;
  receive_ = options_.receive;
  if (send_ == nullptr) {
    DYNAMICCL_TRY(send_, session_.AllocateBuffer(largest));
    DYNAMICCL_TRY(receive_, session_.AllocateBuffer(largest));
  }
  const std::vector<float> ones(largest / sizeof(float), 1.0f);
  const auto* bytes = reinterpret_cast<const std::byte*>(ones.data());
  DYNAMICCL_CHECK_OK(session_.device().CopyIn(send_, bytes, ones.size() * sizeof(float)));
  std::array<ConfigMask, kTunableCollectives> masks;
  for (const Collective collective : options_.collectives) {
    DYNAMICCL_TRY(const CostTable table, TableFor(collective, largest));
    masks[static_cast<size_t>(collective)] = MaskOf(table);
  }
  const dynamicclSweepView_t view = tuner_.View();
  model_ = FromTunerConstants(view.constants, view.n_ranks, view.n_nodes);
  cells_ = PlanSweep({.collectives = options_.collectives,
                      .sizes = options_.sizes,
                      .n_ranks = session_.place().n_ranks,
                      .max_channels = model_.fabric.max_channels,
                      .allowed = [&masks](Collective c, uint64_t) { return masks[static_cast<size_t>(c)]; }});
  return {};
}

// Takes one sample of a cell and returns the microseconds of one call on this rank. No config is forced
// during the barrier before the sample.
Result<double> Sweep::Time(const PlannedCell& cell) {
  tuner_.ForceNothing();
  DYNAMICCL_CHECK_OK(session_.Barrier());
  tuner_.Force(cell.config);
  const BenchCall call = CallOf(cell.collective, cell.bytes);
  const int64_t begin = MonotonicNanoseconds();
  for (int i = 0; i < cell.iterations; ++i) DYNAMICCL_CHECK_OK(session_.Issue(call));
  DYNAMICCL_CHECK_OK(session_.device().Synchronize());
  const int64_t end = MonotonicNanoseconds();
  return static_cast<double>(end - begin) * 1e-3 / cell.iterations;
}

// Takes an untimed first sample of every cell, which makes the cell's connections. The time of this sample
// determines how many calls a timed sample has. The time that was not spent in calls, for example in
// barriers, is expected again in each later sample.
Status Sweep::Calibrate() {
  DYNAMICCL_CHECK_OK(LookAtClock());
  const double before_us = spent_us_;
  std::vector<double> times;
  for (const PlannedCell& cell : cells_) {
    DYNAMICCL_TRY(const double time, Time(cell));
    times.push_back(time);
    TellCalibrated(times.size());
  }
  tuner_.ForceNothing();
  DYNAMICCL_CHECK_OK(session_.MaxOverRanks(times));
  DYNAMICCL_CHECK_OK(LookAtClock());
  const double calls_us = std::accumulate(times.begin(), times.end(), 0.0);
  const double beside_us = (spent_us_ - before_us - calls_us) / static_cast<double>(cells_.size());
  std::vector<double> expected_us;
  for (size_t i = 0; i < cells_.size(); ++i) {
    cells_[i].iterations = IterationsFor(times[i], kSampleUs);
    const bool probed = GroupEnd(cells_, i) == i + 1;
    expected_us.push_back(times[i] * cells_[i].iterations + std::max(0.0, beside_us) +
                          (probed ? kProbeMilliseconds * 1e3 : 0));
  }
  pace_ = SweepPace(expected_us);
  return {};
}

// Sets spent_us_ to the time of the slowest rank, so that all ranks plan the same number of rounds.
Status Sweep::LookAtClock() {
  std::vector<double> spent{static_cast<double>(MonotonicNanoseconds() - begun_ns_) * 1e-3};
  DYNAMICCL_CHECK_OK(session_.MaxOverRanks(spent));
  spent_us_ = spent[0];
  return {};
}

// Returns the number of rounds that the sweep will make in total, if the current round takes `rest_us` more.
int Sweep::RoundsWith(double rest_us) const {
  return RoundsAltogether(begun_, rest_us, BudgetLeft(), pace_.Round(), options_.repeats);
}

// Reports progress during the untimed first samples. The remaining time is at least that of two timed rounds,
// each of which takes at least as long as the untimed samples.
void Sweep::TellCalibrated(size_t done) const {
  if (!options_.observer) return;
  const double spent_s = static_cast<double>(MonotonicNanoseconds() - begun_ns_) * 1e-9;
  const auto cells = static_cast<double>(cells_.size()), first_calls = static_cast<double>(done);
  const double least_s = spent_s / first_calls * (3 * cells - first_calls);
  options_.observer({.done = done,
                     .cells = cells_.size(),
                     .spent_s = spent_s,
                     .left_s = std::max(least_s, options_.budget_s - spent_s)});
}

// Reports progress during the timed rounds; `done` cells of the current round are finished.
void Sweep::TellMeasured(size_t done) const {
  if (!options_.observer) return;
  const double rest_us = pace_.RestOfRound(done);
  const int rounds = RoundsWith(rest_us);
  options_.observer({.round = begun_,
                     .rounds = rounds,
                     .done = done,
                     .cells = cells_.size(),
                     .spent_s = spent_us_ * 1e-6,
                     .left_s = (rest_us + (rounds - begun_) * pace_.Round()) * 1e-6});
}

// True if the machine copied memory equally fast before and after a measurement. The answer is equal on all
// ranks, because the copy rates are.
bool Steady(double before_gbps, double after_gbps) {
  return std::max(before_gbps, after_gbps) <= kSteadyRatio * std::min(before_gbps, after_gbps);
}

// Times the cells of one group (one collective and size). Each round starts with another cell.
Status Sweep::Group(size_t begin, size_t end, int round, std::vector<double>& times) {
  for (size_t position = begin; position < end; ++position) {
    const size_t index = RotatedIndex(cells_, position, round);
    DYNAMICCL_TRY(times[index], Time(cells_[index]));
  }
  tuner_.ForceNothing();
  return {};
}

// Times a group of cells. Returns whether the machine's copy rate stayed the same meanwhile.
Result<bool> Sweep::Attempt(size_t begin, size_t end, std::vector<double>& times) {
  const double before_us = spent_us_;
  DYNAMICCL_CHECK_OK(Group(begin, end, begun_ - 1, times));
  DYNAMICCL_TRY(const double after, probe_.MeasureMemcpy(kProbeBytes, kProbeMilliseconds));
  DYNAMICCL_CHECK_OK(LookAtClock());
  pace_.Observe(begin, end, spent_us_ - before_us);
  const bool steady = Steady(copy_gbps_, after);
  disturbed_ += !steady;
  copy_gbps_ = after;
  return steady;
}

// True if the budget has room to measure the group again and everything that still has to be measured.
bool Sweep::MayMeasureAgain(size_t begin, size_t end) const {
  const double again_us = pace_.RestOfRound(begin) - pace_.RestOfRound(end);
  const int due_rounds = std::max(0, std::min(2, options_.repeats) - begun_);
  return BudgetLeft() >= again_us + pace_.RestOfRound(end) + due_rounds * pace_.Round();
}

// Times every cell once. If the machine's copy rate changed during a group of cells, the group is measured
// again, up to kMaxAttempts times in total.
Status Sweep::Round(int round) {
  begun_ = round + 1;
  std::vector<double> times(cells_.size());
  DYNAMICCL_TRY(copy_gbps_, probe_.MeasureMemcpy(kProbeBytes, kProbeMilliseconds));
  for (size_t begin = 0; begin < cells_.size();) {
    const size_t end = GroupEnd(cells_, begin);
    for (int attempt = 1; attempt <= kMaxAttempts; ++attempt) {
      DYNAMICCL_TRY(const bool steady, Attempt(begin, end, times));
      if (steady || !MayMeasureAgain(begin, end)) break;
    }
    begin = end;
    TellMeasured(begin);
  }
  samples_.push_back(std::move(times));
  return {};
}

// Returns the config that the library itself would choose for a cell: the cheapest entry of its cost table,
// with the library's number of channels, or the cost model's where the library does not tell it.
Result<CollectiveConfig> Sweep::DefaultOf(const PlannedCell& cell) {
  DYNAMICCL_TRY(const CostTable table, TableFor(cell.collective, cell.bytes));
  CollectiveConfig config = CheapestConfig(table);
  int channels = session_.ChannelsOf(cell.collective, cell.bytes, config);
  if (channels == 0)
    channels = DefaultChannels(model_, cell.collective, cell.bytes, config.algorithm, config.protocol);
  config.channels = static_cast<uint8_t>(channels);
  return config;
}

Result<SweepResult> Sweep::Collect() {
  tuner_.ForceNothing();
  SweepResult result{.context = {options_.topology, model_},
                     .repeats = static_cast<int>(samples_.size()),
                     .disturbed = disturbed_};
  for (std::vector<double>& round : samples_) DYNAMICCL_CHECK_OK(session_.MaxOverRanks(round));
  for (size_t i = 0; i < cells_.size(); ++i) {
    const PlannedCell& cell = cells_[i];
    Measurement row{options_.topology, cell.collective, cell.bytes, cell.config, cell.is_default()};
    if (cell.is_default()) {
      DYNAMICCL_TRY(row.config, DefaultOf(cell));
    }
    for (const std::vector<double>& round : samples_)
      row.microseconds.push_back(static_cast<float>(round[i]));
    result.rows.push_back(std::move(row));
  }
  return result;
}

Result<SweepResult> Sweep::Run() {
  begun_ns_ = MonotonicNanoseconds();
  DYNAMICCL_CHECK_OK(Prepare());
  DYNAMICCL_CHECK_OK(Calibrate());
  TellMeasured(0);
  for (int round = 0; round < RoundsWith(0); ++round) DYNAMICCL_CHECK_OK(Round(round));
  DYNAMICCL_TRY(SweepResult result, Collect());
  DYNAMICCL_CHECK_OK(LookAtClock());
  result.seconds = spent_us_ * 1e-6;
  return result;
}

// Takes a cell's first sample in this process, which makes the connections of its config, and discards the
// time.
Status Sweep::Connect(PlannedCell& cell) {
  DYNAMICCL_TRY(const double time, Time(cell));
  tuner_.ForceNothing();
  std::vector<double> slowest{time};
  DYNAMICCL_CHECK_OK(session_.MaxOverRanks(slowest));
  cell.iterations = IterationsFor(slowest[0], kSampleUs);
  return {};
}

// Takes a few samples of a cell. The duration of the visit is appended to the times, so that one exchange
// makes both equal on all ranks.
Result<CellVisit> Sweep::Take(size_t index) {
  const int64_t begin = MonotonicNanoseconds();
  PlannedCell& cell = cells_[index];
  if (!connected_[index]) DYNAMICCL_CHECK_OK(Connect(cell));
  connected_[index] = true;
  std::vector<double> times(kVisitRepeats);
  DYNAMICCL_TRY(double before, probe_.MeasureMemcpy(kProbeBytes, kProbeMilliseconds));
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    for (double& time : times) {
      DYNAMICCL_TRY(time, Time(cell));
    }
    tuner_.ForceNothing();
    DYNAMICCL_TRY(const double after, probe_.MeasureMemcpy(kProbeBytes, kProbeMilliseconds));
    if (Steady(before, after)) break;
    before = after;
  }
  times.push_back(static_cast<double>(MonotonicNanoseconds() - begin) * 1e-9);
  DYNAMICCL_CHECK_OK(session_.MaxOverRanks(times));
  return CellVisit{{times.begin(), times.end() - 1}, times.back()};
}

// All ranks take the maximum. Ranks other than 0 contribute zeros, so rank 0's values win.
Status Sweep::TakeFirstRanks(std::vector<double>& values) {
  if (values.empty()) return {};
  if (session_.place().rank != 0) std::fill(values.begin(), values.end(), 0.0);
  return session_.MaxOverRanks(values);
}

Result<std::vector<PricedCell>> Sweep::PricedCells() {
  std::vector<PricedCell> priced;
  for (const PlannedCell& cell : cells_) {
    CollectiveConfig config = cell.config;
    if (cell.is_default()) {
      DYNAMICCL_TRY(config, DefaultOf(cell));
    }
    priced.push_back(PriceCell(model_, cell, config));
  }
  return priced;
}

// Returns the samples of each cell from earlier runs. All ranks get those that rank 0 has.
Result<std::vector<std::vector<float>>> Sweep::KnownSamples(const std::vector<PricedCell>& cells,
                                                            const std::vector<Measurement>& known) {
  std::vector<std::vector<float>> samples(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    for (const Measurement& row : known) {
      if (IsOf(row, cells[i])) samples[i] = row.microseconds;
    }
  }
  std::vector<double> counts, values;
  for (const std::vector<float>& of_cell : samples) counts.push_back(static_cast<double>(of_cell.size()));
  DYNAMICCL_CHECK_OK(TakeFirstRanks(counts));
  for (size_t i = 0; i < cells.size(); ++i) {
    samples[i].resize(static_cast<size_t>(counts[i]));
    values.insert(values.end(), samples[i].begin(), samples[i].end());
  }
  DYNAMICCL_CHECK_OK(TakeFirstRanks(values));
  auto value = values.begin();
  for (std::vector<float>& of_cell : samples) {
    for (float& us : of_cell) us = static_cast<float>(*value++);
  }
  return samples;
}

Result<ChosenSweepResult> Sweep::RunChosen(const ChoiceOptions& choice, const std::vector<Measurement>& known,
                                           const SweepObserver& observer) {
  DYNAMICCL_CHECK_OK(Prepare());
  DYNAMICCL_CHECK_OK(observer.begun({options_.topology, model_}));
  DYNAMICCL_TRY(const std::vector<PricedCell> cells, PricedCells());
  DYNAMICCL_TRY(auto samples, KnownSamples(cells, known));
  connected_.assign(cells.size(), false);
  return MeasureChosen(
      cells, choice, options_.budget_s, *this, samples, [&](size_t cell, const CellVisit& visit) {
        return observer.visited(RowOf(options_.topology, cells[cell], visit.microseconds), visit.seconds);
      });
}

}  // namespace

Result<ChosenSweepResult> RunChosenSweep(BenchSession& session, const SweepOptions& options,
                                         const ChoiceOptions& choice, const std::vector<Measurement>& known,
                                         const SweepObserver& observer) {
  DYNAMICCL_TRY(ForcedConfig tuner, ForcedConfig::Open(options.tuner_path));
  return Sweep(session, options, std::move(tuner)).RunChosen(choice, known, observer);
}

Result<SweepResult> RunSweep(BenchSession& session, const SweepOptions& options) {
  DYNAMICCL_TRY(ForcedConfig tuner, ForcedConfig::Open(options.tuner_path));
  return Sweep(session, options, std::move(tuner)).Run();
}

}  // namespace dynamiccl
