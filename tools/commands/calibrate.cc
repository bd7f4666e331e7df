// SPDX-License-Identifier: Apache-2.0
// `dynamiccl calibrate`: fits a system (the simulator's description of a machine) to measured times.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "src/base/file_kind.h"
#include "src/simulator/fit_system.h"
#include "src/simulator/system.h"
#include "tools/calibration/timed_systems.h"
#include "tools/command_table.h"
#include "tools/commands/collective_option.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

struct CalibrateOptions {
  std::vector<std::string> data;
  std::string output;
  std::string only;
  std::string merged;
  TimedFileOptions files;
  bool json = false;
  FitOptions fit;
};

Json ErrorsJson(const System& system) {
  Json rows = Json::array();
  for (const StatedError& error : system.errors)
    rows.push_back({{"collective", Name(error.collective)},
                    {"ranks", error.n_ranks},
                    {"cells", error.cells},
                    {"median", error.median},
                    {"mean", error.mean}});
  return rows;
}

// Fits the only system in `systems`, computes the errors of the fit, and writes the fitted system.
Result<int> Calibrate(const std::vector<TimedSystem>& systems, const CalibrateOptions& options) {
  if (systems.size() != 1) {
    std::string names;
    for (const TimedSystem& system : systems) names += fmt::format("\n    {}", system.name);
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "the data hold {} systems, one can be written:{}",
                              systems.size(), names),
                    "name one with --system, or take all as one system with --merge NAME");
  }
  DYNAMICCL_TRY(System system, FitSystem(systems.front().name, systems.front().cells, options.fit));
  DYNAMICCL_CHECK_OK(StateErrors(system, systems.front().cells, options.fit));
  DYNAMICCL_CHECK_OK(WriteSystemFile(options.output, system));
  if (options.json) {
    PrintJson({{"schema", 1},
               {"system", system.name},
               {"cells", systems.front().cells.size()},
               {"left_out", systems.front().left_out},
               {"errors", ErrorsJson(system)},
               {"file", options.output}});
  } else {
    fmt::print("{}: {} times, {} left out (no formula for them); written to {}\n", system.name,
               systems.front().cells.size(), systems.front().left_out, options.output);
    for (const StatedError& error : system.errors)
      fmt::print("error on {} ranks, fitted to the others: {} {:.1f} % median, {:.1f} % mean of {} times\n",
                 error.n_ranks, Name(error.collective), 100 * error.median, 100 * error.mean, error.cells);
    if (system.errors.empty()) fmt::print("error unknown: leaving out a rank count takes three of them\n");
  }
  return kExitOk;
}

}  // namespace

Result<int> CalibrateCommand(CommandLine& line) {
  CalibrateOptions options;
  CLI::App& app = line.app();
  app.add_option("data", options.data, "Measurement files, output of nccl-tests, tables of times")
      ->required();
  app.add_option("-o,--output", options.output, "System file to write")->required();
  app.add_option("--from", options.files.format,
                 "Importer of the files (default: told by content), see trace import");
  AddCollectiveOption(app, options.files.collective);
  CLI::Option* const only = app.add_option("--system", options.only, "Only this system of those in the data");
  app.add_option("--merge", options.merged,
                 "Take all data as one system of this name, though machines or library versions differ")
      ->excludes(only);
  app.add_option("--seed", options.fit.seed, "Where the fit's further starts lie")->capture_default_str();
  app.add_option("--starts", options.fit.starts, "Starts of the fit")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print JSON");
  if (const auto exit = line.Parse()) return *exit;
  DYNAMICCL_CHECK_OK(CheckOutputs({options.output}));
  TimedSystems collected;
  for (const std::string& path : options.data) DYNAMICCL_CHECK_OK(collected.Read(path, options.files));
  for (const std::string& note : collected.notes()) spdlog::info("{}", note);
  if (!options.merged.empty()) collected.Merge(options.merged);
  DYNAMICCL_TRY(const std::vector<TimedSystem> systems, SystemsOf(collected, options.only));
  return Calibrate(systems, options);
}

}  // namespace dynamiccl
