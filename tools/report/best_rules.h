// SPDX-License-Identifier: Apache-2.0
// Override rules that force the fastest measured configs, in the CSV of NCCL's example tuner
// (docs/formats/override_rules.md).
#pragma once

#include <span>
#include <string>

#include "src/collective/size_class.h"
#include "tools/report/choice_comparison.h"

namespace dynamiccl {

// The columns' names, as a comment line.
extern const char* const kRuleColumns;

// One line: `config` for every call of the collective with `from` to `to` bytes, both inclusive.
std::string RuleLine(Collective collective, uint64_t from, uint64_t to, const CollectiveConfig& config);
// Likewise for the sizes of one class.
std::string RuleLine(Collective collective, SizeClass size_class, const CollectiveConfig& config);

// A line for each cell of the topology whose best config is not the default.
std::string BestRulesOf(std::span<const SweepCell> cells, const std::string& topology);

}  // namespace dynamiccl
