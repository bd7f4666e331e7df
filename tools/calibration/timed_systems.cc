// SPDX-License-Identifier: Apache-2.0
// Recognises files, names systems and reduces repeats to one time.
#include "tools/calibration/timed_systems.h"

#include <algorithm>
#include <cmath>

#include "src/base/statistics.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/fit_system.h"
#include "tools/calibration/published_table.h"
#include "traces/format/measurement_file.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kMeasurementMagic = "\"dynamiccl-measurements\"";

// Returns the spread of one cell's repeated times, as TimedSystems defines it; 0 if the time was measured
// once.
double Spread(const std::vector<double>& repeats) {
  if (repeats.size() < 2) return 0;
  std::vector<double> halves[2];
  for (size_t i = 0; i < repeats.size(); ++i) halves[i % 2].push_back(repeats[i]);
  return std::fabs(std::log(NearestRank(halves[0], 0.5) / NearestRank(halves[1], 0.5)));
}

std::string_view WithoutSuffix(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

// Returns name and origin of the system on which the rows of `context` were measured.
std::pair<std::string, std::string> SystemOf(const MeasurementFile& file, const MeasurementContext& context,
                                             const std::string& path) {
  if (context.model.fabric.intra.bandwidth_gbps > 0) return {context.topology, ""};
  if (!file.machine.empty())
    return {file.library.empty() ? file.machine : file.machine + ", " + file.library, file.hosts};
  const std::string ranks = fmt::format(" x{}", context.model.fabric.n_ranks);
  return {std::string(WithoutSuffix(WithoutSuffix(context.topology, " in-place"), ranks)), path};
}

// Returns whether the simulator (src/simulator) has a formula for the time of the cell's collective and
// config.
bool HasFormula(const TimedCell& cell) {
  if (static_cast<int>(cell.collective) >= kTunableCollectives || cell.n_ranks < 2 || !(cell.us > 0))
    return false;
  if (cell.config.algorithm == Algorithm::kUndefined) return true;
  return PriorCosts(cell.config.algorithm, Protocol::kSimple).known() &&
         TermsOf(cell.collective, cell.config.algorithm, cell.n_ranks, cell.n_nodes).volume > 0;
}

}  // namespace

Status TimedSystems::Read(const std::string& path, const TimedFileOptions& options) {
  DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
  const std::string head = stream.Head(kHeadBytes);
  if (head.substr(0, head.find('\n')).find(kMeasurementMagic) != std::string::npos) {
    DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(path));
    Add(file, path);
    return {};
  }
  if (options.format.empty() && LooksLikePublishedTable(head))
    return ReadPublishedTable(path, options.collective, *this);
  DYNAMICCL_TRY(const Imported imported,
                ImportFile(path, options.format, {.collective = options.collective}));
  if (!imported.measurements) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: a trace, not measured times", path),
                    "give measurement files, output of nccl-tests, or a table of times");
  }
  for (const std::string& note : imported.notes) notes_.push_back(path + ": " + note);
  Add(*imported.measurements, path);
  return {};
}

void TimedSystems::Add(const MeasurementFile& file, const std::string& path) {
  std::map<std::string, const MeasurementContext*> contexts;
  for (const MeasurementContext& context : file.contexts) contexts[context.topology] = &context;
  for (const Measurement& row : file.rows) {
    const MeasurementContext& context = *contexts.at(row.topology);
    const TimedCell key{.collective = row.collective,
                        .n_ranks = context.model.fabric.n_ranks,
                        .n_nodes = context.model.fabric.n_nodes,
                        .bytes = row.bytes,
                        .config = row.is_default ? kLeaveNcclAlone : row.config};
    const auto [name, origin] = SystemOf(file, context, path);
    for (const float us : row.microseconds) AddRepeat(name, origin, key, static_cast<double>(us));
  }
}

void TimedSystems::AddRepeat(const std::string& system, const std::string& origin, const TimedCell& key,
                             double us) {
  systems_[{system, origin}][{key.collective, key.n_ranks, key.config.algorithm, key.config.protocol,
                              key.config.channels, key.bytes, key.n_nodes}]
      .push_back(us);
}

void TimedSystems::Merge(const std::string& name) {
  Cells merged;
  for (const auto& [system, cells] : systems_) {
    for (const auto& [key, repeats] : cells)
      merged[key].insert(merged[key].end(), repeats.begin(), repeats.end());
  }
  systems_ = {{{name, ""}, std::move(merged)}};
}

std::string TimedSystems::NameOf(const std::pair<std::string, std::string>& system) const {
  const auto& [name, origin] = system;
  const auto same_name = [&](const auto& entry) { return entry.first.first == system.first; };
  const bool alone = std::count_if(systems_.begin(), systems_.end(), same_name) == 1;
  if (alone) return name;
  return fmt::format("{} ({})", name, origin.empty() ? "origin unknown" : origin);
}

std::vector<TimedRepeats> TimedSystems::Repeats() const {
  std::vector<TimedRepeats> all;
  for (const auto& [system, cells] : systems_) {
    for (const auto& [key, repeats] : cells) {
      const auto& [collective, n_ranks, algorithm, protocol, channels, bytes, n_nodes] = key;
      const TimedCell cell{collective, n_ranks, n_nodes, bytes, {algorithm, protocol, channels}, 0, 0};
      all.push_back({NameOf(system), cell, repeats});
    }
  }
  return all;
}

std::vector<TimedSystem> TimedSystems::Take() const {
  std::vector<TimedSystem> taken;
  for (const auto& [named, cells] : systems_) {
    TimedSystem system{.name = NameOf(named), .cells = {}};
    for (const auto& [key, repeats] : cells) {
      const auto& [collective, n_ranks, algorithm, protocol, channels, bytes, n_nodes] = key;
      system.cells.push_back({collective,
                              n_ranks,
                              n_nodes,
                              bytes,
                              {algorithm, protocol, channels},
                              NearestRank(repeats, 0.5),
                              Spread(repeats)});
    }
    system.left_out = std::erase_if(system.cells, [](const TimedCell& cell) { return !HasFormula(cell); });
    taken.push_back(std::move(system));
  }
  return taken;
}

Result<std::vector<TimedSystem>> SystemsOf(const TimedSystems& collected, const std::string& only) {
  std::vector<TimedSystem> systems = collected.Take();
  if (systems.empty()) return MakeError(ErrorKind::kInvalidArgument, "no times above 0 in the data");
  if (!only.empty()) std::erase_if(systems, [&](const TimedSystem& system) { return system.name != only; });
  if (systems.empty()) return MakeError(ErrorKind::kInvalidArgument, "no system '{}' in the data", only);
  return systems;
}

}  // namespace dynamiccl
