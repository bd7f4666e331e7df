// SPDX-License-Identifier: Apache-2.0
// Writes override rules that force the fastest measured configs, in the CSV of NCCL's example tuner
// (docs/formats/override_rules.md).
#pragma once

#include <span>
#include <string>

#include "src/collective/size_class.h"
#include "tools/report/choice_comparison.h"

namespace dynamiccl {

// The first line of a rules file: a comment with the columns' names.
extern const char* const kRuleColumns;

// One rule: `config` for every call of the collective with `from` to `to` bytes, both inclusive.
std::string RuleLine(Collective collective, uint64_t from, uint64_t to, const CollectiveConfig& config);
// One rule for all sizes of one size class.
std::string RuleLine(Collective collective, SizeClass size_class, const CollectiveConfig& config);

// A rules file with one line for each cell of `topology`. The line forces the config of the cell's fastest
// row (BestOf), also where that row is the library's default. A cell without a known config gets no line.
std::string BestRulesOf(std::span<const SweepCell> cells, const std::string& topology);

}  // namespace dynamiccl
