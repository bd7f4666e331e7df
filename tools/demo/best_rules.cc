// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo_steps.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

// NCCL's example tuner spells these in lower case: "allreduce", "ring", "simple".
std::string LowerCase(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string RuleLine(const SweepCell& cell, const CollectiveConfig& config) {
  const SizeClass size_class = SizeClassOf(cell.bytes);
  const SizeClass next{static_cast<uint8_t>(size_class.index + 1)};
  // The last two fields, number of pipelined operations and registered buffers, match anything.
  return fmt::format("{},{},{},{},{},{},-1,-1,-1,-1\n", LowerCase(Name(cell.collective)),
                     LowerBound(size_class), LowerBound(next) - 1, LowerCase(Name(config.algorithm)),
                     LowerCase(Name(config.protocol)), config.channels);
}

}  // namespace

Result<std::string> WriteBestRules(DemoSession& session, const SweptConfigs& swept) {
  std::string text =
      "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n";
  for (const SweepCell& cell : CellsOf(swept.all)) {
    if (cell.topology != session.plan().topology) continue;
    const TimedConfig best = BestOf(cell);
    if (!best.config.leaves_nccl_alone()) text += RuleLine(cell, best.config);
  }
  const std::string path = session.Output("best.csv");
  DYNAMICCL_CHECK_OK(WriteTextFile(path, text));
  return path;
}

}  // namespace dynamiccl
