// SPDX-License-Identifier: Apache-2.0
// `dynamiccl calibrate`: fits a system of the simulator to measured times.
#include <fmt/format.h>

#include "src/simulator/fit_system.h"
#include "src/simulator/system.h"
#include "tools/calibration/timed_systems.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

struct CalibrateOptions {
  std::vector<std::string> data;
  std::string output;
  std::string only;
  bool json = false;
  FitOptions fit;
};

// Judges every system; those with too few rank counts and sizes are listed as not judged.
Result<int> Calibrate(const std::vector<TimedSystem>& systems, const CalibrateOptions& options) {
  if (systems.size() != 1) {
    std::string names;
    for (const TimedSystem& system : systems) names += fmt::format("\n    {}", system.name);
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "the data hold {} systems, one can be written:{}",
                              systems.size(), names),
                    "name one with --system");
  }
  DYNAMICCL_TRY(System system, FitSystem(systems.front().name, systems.front().cells, options.fit));
  DYNAMICCL_CHECK_OK(WriteSystemFile(options.output, system));
  if (options.json) {
    PrintJson({{"schema", 1},
               {"system", system.name},
               {"cells", systems.front().cells.size()},
               {"left_out", systems.front().left_out},
               {"file", options.output}});
  } else {
    fmt::print("{}: {} times, {} left out (no formula for them); written to {}\n", system.name,
               systems.front().cells.size(), systems.front().left_out, options.output);
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
  app.add_option("--system", options.only, "Only this system of those in the data");
  app.add_option("--seed", options.fit.seed, "Where the fit's further starts lie")->capture_default_str();
  app.add_option("--starts", options.fit.starts, "Starts of the fit")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print JSON");
  if (const auto exit = line.Parse()) return *exit;
  DYNAMICCL_TRY(const std::vector<TimedSystem> systems, ReadTimedSystems(options.data, options.only));
  return Calibrate(systems, options);
}

}  // namespace dynamiccl
