// SPDX-License-Identifier: Apache-2.0
// Asks the model for each size class and merges neighbours with the same answer.
#include "studies/calibration/fitted_model.h"

#include <limits>

#include "tools/report/best_rules.h"

namespace dynamiccl {
namespace {

// Range of sizes, in bytes, for which the model is asked.
constexpr uint64_t kFirstBytes = 256;
constexpr uint64_t kLastBytes = uint64_t{1} << 30;

// The (algorithm, protocol) pairs that were measured.
ConfigMask MeasuredFor(const MeasurementFile& sweep, const std::string& topology, Collective collective) {
  ConfigMask mask;
  for (const Measurement& row : sweep.rows) {
    if (row.topology == topology && row.collective == collective && !row.config.leaves_nccl_alone())
      mask.set(ConfigIndex(row.config.algorithm, row.config.protocol));
  }
  return mask;
}

// Returns one rule for each sequence of size classes with the same choice.
std::string RulesFor(Collective collective, const CostModelInput& model, const ConfigMask& allowed) {
  std::string text;
  uint64_t from = 0;
  CollectiveConfig choice = ModelsChoice(model, collective, kFirstBytes, allowed);
  if (choice.leaves_nccl_alone()) return text;
  for (uint8_t index = SizeClassOf(kFirstBytes).index + 1; index <= SizeClassOf(kLastBytes).index; ++index) {
    const uint64_t bytes = LowerBound({index});
    const CollectiveConfig next = ModelsChoice(model, collective, bytes, allowed);
    if (next == choice) continue;
    text += RuleLine(collective, from, bytes - 1, choice);
    from = bytes;
    choice = next;
  }
  return text + RuleLine(collective, from, std::numeric_limits<uint64_t>::max(), choice);
}

}  // namespace

std::string RulesOfModel(const MeasurementFile& sweep, const FittedModel& model) {
  std::string text = kRuleColumns;
  for (int c = 0; c < kTunableCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    const ConfigMask measured = MeasuredFor(sweep, model.context.topology, collective);
    if (measured.any()) text += RulesFor(collective, model.context.model, measured);
  }
  return text;
}

}  // namespace dynamiccl
