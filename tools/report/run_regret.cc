// SPDX-License-Identifier: Apache-2.0
// Computes what the choices of a run cost, with the times of the sweep's nearest size for each key.
#include "tools/report/run_regret.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

// Largest distance in octaves between the size of a run's calls and a size of the sweep whose times are used
// for them (docs/formats/report.md).
constexpr double kNearestOctaves = 0.5;

// Distance between two sizes in octaves (factors of two).
double Octaves(uint64_t a, uint64_t b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

// The sweep's measurements for the size nearest to the key's, or null if no size is near enough.
const SweepCell* NearestCell(const std::vector<SweepCell>& cells, const std::string& topology,
                             const RunKey& key) {
  const SweepCell* nearest = nullptr;
  for (const SweepCell& cell : cells) {
    if (cell.topology != topology || cell.collective != key.collective || cell.bytes == 0 || key.bytes == 0)
      continue;
    if (nearest == nullptr || Octaves(cell.bytes, key.bytes) < Octaves(nearest->bytes, key.bytes))
      nearest = &cell;
  }
  const bool near = nearest != nullptr && Octaves(nearest->bytes, key.bytes) <= kNearestOctaves;
  return near ? nearest : nullptr;
}

// All configs that the key's calls got, with the number of calls. A call about which NCCL asked no tuner
// counts as NCCL's own choice.
std::vector<std::pair<CollectiveConfig, int64_t>> ConfigsOf(const RunKeyAccount& account) {
  auto configs = account.configs;
  int64_t asked = 0;
  for (const auto& [config, calls] : configs) asked += calls;
  if (asked < account.calls) configs.emplace_back(kLeaveNcclAlone, account.calls - asked);
  return configs;
}

// Computes what the choices for one key cost. Each config counts with its own time. Calls with a config that
// the sweep did not measure are left out.
RegretRow RowOf(const RunKeyAccount& account, const SweepCell& cell) {
  RegretRow row{account.key, cell.bytes, 0, DefaultOf(cell), {}, BestOf(cell)};
  double sum_us = 0;
  int64_t most = 0;
  for (const auto& [config, calls] : ConfigsOf(account)) {
    const TimedConfig timed = ChoiceOf(cell, config);
    if (timed.microseconds.repeats == 0) continue;
    row.calls += calls;
    sum_us += timed.microseconds.median * static_cast<double>(calls);
    if (calls > most) row.chosen = timed;
    most = std::max(most, calls);
  }
  if (row.calls > 0) row.chosen.microseconds.median = sum_us / static_cast<double>(row.calls);
  return row;
}

// True if the trace's number of nodes can be trusted. NCCL tells only a tuner how many nodes a communicator
// spans. Without a tuner, a trace of one host says 1, although hostccl may emulate several nodes.
bool NodesAreKnown(const std::vector<RunKeyAccount>& keys, const RunKey& key) {
  return key.n_nodes != 1 || std::any_of(keys.begin(), keys.end(), [&](const RunKeyAccount& account) {
           return account.key.n_ranks == key.n_ranks && account.key.n_nodes == 1 && !account.decided.empty();
         });
}

// Adds a row to the sums over all keys. The row's medians are microseconds of one call.
void Add(const RegretRow& row, Regret& regret) {
  const double seconds = static_cast<double>(row.calls) * 1e-6;
  regret.counted_calls += row.calls;
  regret.default_s += row.by_default.microseconds.median * seconds;
  regret.chosen_s += row.chosen.microseconds.median * seconds;
  regret.best_s += row.best.microseconds.median * seconds;
  regret.rows.push_back(row);
}

}  // namespace

std::vector<Regret> RegretsOf(const std::vector<RunKeyAccount>& keys, const MeasurementFile& file) {
  const std::vector<SweepCell> cells = CellsOf(file);
  std::vector<Regret> regrets;
  for (const MeasurementContext& context : file.contexts) {
    Regret regret{.topology = context.topology};
    for (const RunKeyAccount& account : keys) {
      const Fabric& fabric = context.model.fabric;
      if (account.key.n_ranks != fabric.n_ranks) continue;
      if (account.key.n_nodes != fabric.n_nodes && NodesAreKnown(keys, account.key)) continue;
      regret.calls += account.calls;
      const SweepCell* const cell = NearestCell(cells, context.topology, account.key);
      if (cell == nullptr) continue;
      const RegretRow row = RowOf(account, *cell);
      const bool whole =
          row.calls > 0 && row.by_default.microseconds.repeats > 0 && row.best.microseconds.repeats > 0;
      if (whole) Add(row, regret);
    }
    if (regret.calls > 0) regrets.push_back(std::move(regret));
  }
  return regrets;
}

}  // namespace dynamiccl
