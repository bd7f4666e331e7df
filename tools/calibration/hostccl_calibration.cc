// SPDX-License-Identifier: Apache-2.0
// `hostccl_calibration two-point`: the constants of hostccl's default from a small sweep.
// `hostccl_calibration map`: the constants fitted to a whole sweep, and the map of the best choice.
// `hostccl_calibration rules`: what the fitted model picks on one topology, as override rules.
#include <CLI/CLI.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>

#include "tools/calibration/choice_map.h"
#include "tools/calibration/fitted_model.h"
#include "tools/calibration/two_point.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

struct Words {
  std::string input;
  std::string constants;
  std::string topology;
  std::string output;
  bool json = false;
};

Status PrintTwoPoint(const Words& words) {
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(words.input));
  DYNAMICCL_TRY(const std::vector<SoftwareCost> costs, TwoPointCosts(file));
  if (!words.json) {
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

// The fitted constants as contexts without rows: a measurement file that any reader of those can open.
Status WriteConstants(const std::string& path, const MeasurementFile& sweep,
                      const std::vector<FittedModel>& models) {
  MeasurementFile file{sweep.library, sweep.machine, "hostccl_calibration map: " + sweep.command, {}, {}};
  for (const FittedModel& model : models) file.contexts.push_back(model.context);
  return WriteMeasurementFile(path, file);
}

Status PrintMap(const Words& words) {
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(words.input));
  const std::vector<FittedModel> models = FitModels(file);
  if (!words.constants.empty()) DYNAMICCL_CHECK_OK(WriteConstants(words.constants, file, models));
  const ChoiceMap map = MapChoices(file, models);
  if (words.json) {
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

Status WriteRules(const Words& words) {
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(words.input));
  std::string known;
  for (const FittedModel& model : FitModels(file)) {
    if (model.context.topology == words.topology)
      return WriteTextFile(words.output, RulesOfModel(file, model));
    known += " " + model.context.topology;
  }
  return MakeError(ErrorKind::kInvalidArgument, "{}: no topology '{}'. It has:{}", words.input,
                   words.topology, known);
}

int Main(int argc, char** argv) {
  CLI::App app("Constants of hostccl's default choice, and the map of the best one");
  app.require_subcommand(1);
  Words words;
  auto* const two_point = app.add_subcommand("two-point", "Constants from the smallest samples at two sizes");
  auto* const map = app.add_subcommand("map", "Best choice, default and calibrated default of a sweep");
  auto* const rules = app.add_subcommand("rules", "The calibrated default of one topology as override rules");
  for (auto* command : {two_point, map, rules}) {
    command->add_option("sweep", words.input, "A .measurements file of `dynamiccl sweep`")
        ->required()
        ->check(CLI::ExistingFile);
  }
  for (auto* command : {two_point, map}) command->add_flag("--json", words.json, "Write JSON");
  rules->add_option("--topology", words.topology, "Topology of the sweep")->required();
  rules->add_option("-o,--output", words.output, "File to write the rules to (.csv)")->required();
  map->add_option("--constants", words.constants, "File to write the fitted constants to (.measurements)");
  CLI11_PARSE(app, argc, argv);
  const Status done = two_point->parsed() ? PrintTwoPoint(words)
                      : map->parsed()     ? PrintMap(words)
                                          : WriteRules(words);
  if (done) return 0;
  fmt::print(stderr, "{}", Describe(done.error()));
  return 1;
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  return dynamiccl::Main(argc, argv);
}
