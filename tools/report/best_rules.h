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

// Returns one rule: `config` for every call of the collective with `from` to `to` bytes, both inclusive.
std::string RuleLine(Collective collective, uint64_t from, uint64_t to, const CollectiveConfig& config);
// Returns one rule for all sizes in a size class.
std::string RuleLine(Collective collective, SizeClass size_class, const CollectiveConfig& config);

// Returns a rules file with one line for each collective and size that the sweep measured on `topology`. The
// line forces the config of the fastest measurement (BestOf), even if that is the library's default. A
// collective and size whose fastest config is not known gets no line.
std::string BestRulesOf(std::span<const SweepCell> cells, const std::string& topology);

}  // namespace dynamiccl
