// SPDX-License-Identifier: Apache-2.0
// Formats override rules, and picks the fastest config for each collective and size of a sweep.
#include "tools/report/best_rules.h"

#include <fmt/format.h>

#include <cctype>

namespace dynamiccl {
namespace {

// NCCL's example tuner spells names in lower case: "allreduce", "ring", "simple".
std::string LowerCase(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

}  // namespace

const char* const kRuleColumns =
    "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n";

std::string RuleLine(Collective collective, uint64_t from, uint64_t to, const CollectiveConfig& config) {
  // The last two fields of a rule, number of pipelined operations and registered buffers, match any call.
  return fmt::format("{},{},{},{},{},{},-1,-1,-1,-1\n", LowerCase(Name(collective)), from, to,
                     LowerCase(Name(config.algorithm)), LowerCase(Name(config.protocol)),
                     config.channels == 0 ? -1 : int{config.channels});
}

std::string RuleLine(Collective collective, SizeClass size_class, const CollectiveConfig& config) {
  const SizeClass next{static_cast<uint8_t>(size_class.index + 1)};
  return RuleLine(collective, LowerBound(size_class), LowerBound(next) - 1, config);
}

std::string BestRulesOf(std::span<const SweepCell> cells, const std::string& topology) {
  std::string text = kRuleColumns;
  for (const SweepCell& cell : cells) {
    if (cell.topology != topology) continue;
    const TimedConfig best = BestOf(cell);
    if (!best.config.leaves_nccl_alone())
      text += RuleLine(cell.collective, SizeClassOf(cell.bytes), best.config);
  }
  return text;
}

}  // namespace dynamiccl
