// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab compare`: shows whether two sweeps order the configs alike, and where they do not.
#include <fmt/format.h>

#include "src/collective/size_class.h"
#include "studies/config_order/config_order.h"
#include "studies/lab_commands.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

// Parses FIRST=SECOND.
Result<std::vector<std::pair<std::string, std::string>>> TopologyPairs(
    const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "--topology '{}' is not a pair", text),
                      "write FIRST=SECOND, the topology of the first file and the one that it stands for");
    }
    pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return pairs;
}

Json CompareJson(const std::vector<ArmPair>& pairs) {
  Json list = Json::array();
  for (const ArmPair& pair : pairs) {
    list.push_back({{"topology", pair.topology},
                    {"collective", Name(pair.collective)},
                    {"bytes", pair.bytes},
                    {"other_bytes", pair.other_bytes},
                    {"arms", {pair.arm, pair.other_arm}},
                    {"ratio", pair.ratio},
                    {"other_ratio", pair.other_ratio}});
  }
  return list;
}

void PrintCompare(const OrderAgreement& agreement) {
  fmt::print("{} cells in both, {} without a counterpart\n", agreement.cells, agreement.unmatched_cells);
  fmt::print("{} pairs in the same order, {} in reverse, {} ties: Kendall's tau {:.2f}\n",
             agreement.concordant.size(), agreement.discordant.size(), agreement.ties.size(),
             agreement.Tau());
  for (const ArmPair& pair : agreement.discordant) {
    fmt::print("reversed: {} {} {} (for {}): {} takes {:.2f}x of {}, there {:.2f}x\n", pair.topology,
               Name(pair.collective), FormatBytes(pair.bytes), FormatBytes(pair.other_bytes), pair.arm,
               pair.ratio, pair.other_arm, pair.other_ratio);
  }
}

}  // namespace

Result<int> CompareCommand(CommandLine& line) {
  std::string first;
  std::string second;
  std::vector<std::string> topologies;
  OrderOptions options;
  bool json = false;
  line.app().add_option("first", first, ".measurements file")->required();
  line.app().add_option("second", second, ".measurements file that it is compared with")->required();
  line.app()
      .add_option("--topology", topologies, "FIRST=SECOND: topologies that stand for each other")
      ->required();
  line.app()
      .add_option("--size-scale", options.size_scale,
                  "A size of the second file times this is that of the first")
      ->check(CLI::PositiveNumber);
  line.app()
      .add_option("--tie", options.tie, "Differences below this share are ties")
      ->check(CLI::Range(0.0, 1.0));
  line.app().add_flag("--json", json, "JSON on standard output");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(options.topologies, TopologyPairs(topologies));
  DYNAMICCL_TRY(const MeasurementFile ours, ReadMeasurementFile(first));
  DYNAMICCL_TRY(const MeasurementFile theirs, ReadMeasurementFile(second));
  DYNAMICCL_TRY(const OrderAgreement agreement, CompareOrder(ours, theirs, options));
  if (!json) {
    PrintCompare(agreement);
    return kExitOk;
  }
  PrintJson({{"schema", 1},
             {"cells", agreement.cells},
             {"unmatched_cells", agreement.unmatched_cells},
             {"tau", agreement.Tau()},
             {"concordant", CompareJson(agreement.concordant)},
             {"discordant", CompareJson(agreement.discordant)},
             {"ties", CompareJson(agreement.ties)}});
  return kExitOk;
}

}  // namespace dynamiccl
