// SPDX-License-Identifier: Apache-2.0
// What a policy does where a job's sizes change: at which sizes its protocols change beside those of the
// sweep's best, and how many calls of a new size it takes until the choice is a good one.
#pragma once

#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "agents/evaluation/regret.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// Keys of one topology and collective, by size.
using KeyLine = std::vector<const SweptKey*>;
// Lines of at least `least_sizes` keys with a measured default; they point into `keys`.
std::vector<KeyLine> LinesOf(const std::vector<SweptKey>& keys, size_t least_sizes);

// Places in a line: LL below the first, Simple from the second on, LL128 between.
struct Borders {
  size_t ll_ends = 0;
  size_t simple_begins = 0;
};
// The borders of least total log time, each key at its protocol's best config. Robust against noise at single
// keys.
Borders BestBorders(const KeyLine& line);
// The borders that contradict the fewest of a chooser's protocols.
Borders BordersOf(const KeyLine& line, const Chooser& chooser);

// A chooser's borders beside the best, over the lines whose best one lies inside of the line.
struct BorderResult {
  std::string chooser;
  size_t lines[2] = {};             // by border: LL's end, Simple's begin
  size_t within_one_class[2] = {};  // not farther than one place of the line
  double loss = 0;                  // mean over lines of ln(time with the chooser's borders / with the best)
};
std::vector<BorderResult> JudgeBorders(const std::vector<KeyLine>& lines,
                                       const std::vector<Chooser>& choosers);

// How choices come about at a size that was never called before.
struct GrowthResult {
  std::string way;
  size_t changes = 0;
  size_t ready = 0;         // regret at most 5 % from the first call on
  size_t never = 0;         // still above after kProbingCalls calls
  double p75_call = 0;      // from which on it is at most 5 %, of three quarters of the changes
  double early_regret = 0;  // mean over changes and their first kEarlyCalls calls, trials not counted
};
inline constexpr int kEarlyCalls = 25;

// Calls of `from` bytes become calls of `to` bytes, by their ratio.
struct SizeChange {
  uint64_t from = 1;
  uint64_t to = 2;
};

// Every key of a line after the key of the size that it changes from, where one is: that one was
// searched for kProbingCalls calls before. Nothing of the new size was called. With the signal its entry
// stands before its first call; without, that call is the library's own and the entry holds from the second
// on, or, where it takes a new table version, from kEarlyCalls on.
std::vector<GrowthResult> JudgeGrowth(const Policy& policy, const std::vector<KeyLine>& lines,
                                      const SizeChange& change, uint64_t seed);

// Markdown.
std::string FormatScenarios(const Policy& policy, const std::vector<SweptKey>& keys);

}  // namespace dynamiccl::agents
