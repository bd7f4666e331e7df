// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab clusters`: sweeps of randomised clusters around systems fitted to measured times, or
// published times themselves as a sweep.
#include <fmt/format.h>

#include <algorithm>

#include "src/base/file_kind.h"
#include "src/simulator/fit_system.h"
#include "studies/clusters/random_clusters.h"
#include "studies/lab_commands.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

struct ClustersCommandOptions {
  std::vector<std::string> data;
  std::string output;
  std::string published;
  bool json = false;
  ClusterOptions clusters;
};

// Fewer cells cannot hold a fit of two kinds of paths.
constexpr size_t kFewestCells = 24;

// Fits every system with enough cells, or only the one named.
Result<std::vector<System>> FittedSystems(const TimedSystems& data, const std::string& only) {
  std::vector<System> systems;
  for (const TimedSystem& timed : data.Take()) {
    if (timed.cells.size() < kFewestCells || (!only.empty() && timed.name != only)) continue;
    DYNAMICCL_TRY(System system, FitSystem(timed.name, timed.cells, {.starts = 2}));
    const bool usable = system.path(Algorithm::kRing, Protocol::kSimple).known();
    if (usable) systems.push_back(std::move(system));
  }
  if (!systems.empty()) return systems;
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "no system with {} times or more in the data", kFewestCells),
      "give what `dynamiccl calibrate` takes");
}

}  // namespace

Result<int> ClustersCommand(CommandLine& line) {
  ClustersCommandOptions options;
  CLI::App& app = line.app();
  app.add_option("data", options.data, "Measured times, as `dynamiccl calibrate` takes them")->required();
  app.add_option("-o,--output", options.output, "Measurement file to write")->required();
  app.add_option("--count", options.clusters.count, "Clusters to make")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--seed", options.clusters.seed, "Equal seeds and data give equal files")
      ->capture_default_str();
  app.add_option("--spread", options.clusters.spread,
                 "How far the constants are moved, standard deviation as a logarithm")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--every-class", options.clusters.every_class,
               "Every size class from 4 KiB to 64 MiB in place of six sizes at random");
  app.add_option("--published", options.published,
                 "Write this system's published times as a sweep instead; algorithms must have been forced");
  app.add_flag("--json", options.json, "Say as JSON what was written");
  if (const auto exit = line.Parse()) return *exit;
  DYNAMICCL_CHECK_OK(CheckFolderOf(options.output));
  TimedSystems data;
  for (const std::string& path : options.data) DYNAMICCL_CHECK_OK(data.Read(path));
  DYNAMICCL_TRY(const std::vector<System> systems, FittedSystems(data, options.published));
  auto file = options.published.empty() ? RandomClusters(systems, options.clusters)
                                        : SweepOfPublished(data, options.published, systems.front());
  if (!file) return tl::unexpected<Error>(file.error());
  file->command = line.Quoted();
  DYNAMICCL_CHECK_OK(WriteMeasurementFile(options.output, *file));
  if (options.json) {
    PrintJson({{"schema", 1},
               {"output", options.output},
               {"topologies", file->contexts.size()},
               {"rows", file->rows.size()},
               {"systems", systems.size()}});
    return kExitOk;
  }
  fmt::print("{}: {} topologies, {} times, from {} fitted systems\n", options.output, file->contexts.size(),
             file->rows.size(), systems.size());
  return kExitOk;
}

}  // namespace dynamiccl
