// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab hostccl-calibration two-point`: prints the constants of hostccl's default from a small
// sweep.
// `dynamiccl-lab hostccl-calibration map`: prints the constants fitted to a whole sweep, and the map of the
// best choice.
// `dynamiccl-lab hostccl-calibration rules`: prints the fitted model's choices on one topology as override
// rules.
#include <fmt/format.h>

#include <algorithm>

#include "src/base/file_kind.h"
#include "studies/calibration/choice_map.h"
#include "studies/calibration/fitted_model.h"
#include "studies/calibration/two_point.h"
#include "studies/lab_commands.h"
#include "tools/exit_code.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

struct HostcclCalibrationOptions {
  std::string input;
  std::string constants;
  std::string topology;
  std::string output;
  bool json = false;
};

Status PrintTwoPoint(const HostcclCalibrationOptions& options) {
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(options.input));
  DYNAMICCL_TRY(const std::vector<SoftwareCost> costs, TwoPointCosts(file));
  if (!options.json) {
    fmt::print("// {}, {}\n{}", file.library, file.machine, SourceLines(costs));
    return {};
  }
  Json rows = Json::array();
  for (const SoftwareCost& cost : costs) {
    rows.push_back({{"topology", cost.topology},
                    {"algorithm", Name(cost.algorithm)},
                    {"protocol", Name(cost.protocol)},
                    {"base_us", cost.base_us},
                    {"hop_us", cost.hop_us},
                    {"bus_gbps", cost.bus_gbps}});
  }
  PrintJson({{"schema", 1}, {"machine", file.machine}, {"costs", rows}});
  return {};
}

// Writes the fitted constants as contexts without rows. The result is a measurement file that every reader of
// such files can open.
Status WriteConstants(const std::string& path, const MeasurementFile& sweep,
                      const std::vector<FittedModel>& models) {
  MeasurementFile file{
      sweep.library, sweep.machine, "dynamiccl-lab hostccl-calibration map: " + sweep.command, {}, {}};
  for (const FittedModel& model : models) file.contexts.push_back(model.context);
  return WriteMeasurementFile(path, file);
}

Status PrintMap(const HostcclCalibrationOptions& options) {
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(options.input));
  const std::vector<FittedModel> models = FitModels(file);
  if (!options.constants.empty()) DYNAMICCL_CHECK_OK(WriteConstants(options.constants, file, models));
  const ChoiceMap map = MapChoices(file, models);
  if (options.json) {
    PrintJson(ToJson(map));
    return {};
  }
  for (const FittedModel& model : models) {
    fmt::print("{}: model off by {:.0f} % before the fit, {:.0f} % after\n", model.context.topology,
               100 * model.error_before, 100 * model.error_after);
  }
  fmt::print("\n{}", Markdown(map));
  return {};
}

Status WriteRules(const HostcclCalibrationOptions& options) {
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(options.input));
  std::string known;
  for (const FittedModel& model : FitModels(file)) {
    if (model.context.topology == options.topology)
      return WriteTextFile(options.output, RulesOfModel(file, model));
    known += " " + model.context.topology;
  }
  return MakeError(ErrorKind::kInvalidArgument, "{}: no topology '{}'. It has:{}", options.input,
                   options.topology, known);
}

}  // namespace

Result<int> HostcclCalibrationCommand(CommandLine& line) {
  CLI::App& app = line.app();
  app.require_subcommand(1);
  HostcclCalibrationOptions options;
  auto* const two_point = app.add_subcommand("two-point", "Constants from the smallest samples at two sizes");
  auto* const map = app.add_subcommand("map", "Best choice, default and calibrated default of a sweep");
  auto* const rules = app.add_subcommand("rules", "The calibrated default of one topology as override rules");
  for (auto* command : {two_point, map, rules}) {
    command->add_option("sweep", options.input, "A .measurements file of `dynamiccl sweep`")
        ->required()
        ->check(CLI::ExistingFile);
  }
  for (auto* command : {two_point, map}) command->add_flag("--json", options.json, "Write JSON");
  rules->add_option("--topology", options.topology, "Topology of the sweep")->required();
  rules->add_option("-o,--output", options.output, "File to write the rules to (.csv)")->required();
  map->add_option("--constants", options.constants, "File to write the fitted constants to (.measurements)");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckOutputs({options.output}));
  DYNAMICCL_CHECK_OK(CheckFolderOf(options.constants));
  DYNAMICCL_CHECK_OK(two_point->parsed() ? PrintTwoPoint(options)
                     : map->parsed()     ? PrintMap(options)
                                         : WriteRules(options));
  return kExitOk;
}

}  // namespace dynamiccl
