// SPDX-License-Identifier: Apache-2.0
// How a policy behaves when a job's sizes change: at which sizes its protocols change, compared with the
// sweep's best, and how many calls of a new size it takes until the choice is good.
#pragma once

#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "agents/evaluation/regret.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// The keys of one topology and collective, by ascending size.
using KeyLine = std::vector<const SweptKey*>;
// All lines of at least `least_sizes` keys with a measured default. They point into `keys`.
std::vector<KeyLine> LinesOf(const std::vector<SweptKey>& keys, size_t least_sizes);

// Places in a line. LL is used below the first border, Simple from the second on, and LL128 between them.
struct Borders {
  size_t ll_ends = 0;
  size_t simple_begins = 0;
};
// The borders with the least total log time, with each key at its protocol's best configuration. Noise at
// single keys has little influence.
Borders BestBorders(const KeyLine& line);
// The borders that agree with as many of the chooser's protocols as possible.
Borders BordersOf(const KeyLine& line, const Chooser& chooser);

// A chooser's borders compared with the best, over the lines whose best border lies inside the line.
struct BorderResult {
  std::string chooser;
  // Number of lines, for each of two borders: LL's end and Simple's begin.
  size_t lines[2] = {};
  // Number of lines where the chooser's border is at most one place off.
  size_t within_one_class[2] = {};
  // Mean over lines, and over the keys of a line, of ln(time with the chooser's borders / time with the best
  // borders).
  double loss = 0;
};
// One result for each chooser.
std::vector<BorderResult> JudgeBorders(const std::vector<KeyLine>& lines,
                                       const std::vector<Chooser>& choosers);

// The result of one way to get choices at a size that was never called before.
struct GrowthResult {
  std::string way;
  size_t changes = 0;
  // Number of changes with a regret of at most 5 % from the first call on.
  size_t ready = 0;
  // Number of changes with a regret still above 5 % after kProbingCalls calls.
  size_t never = 0;
  // The call from which on the regret is at most 5 %, at the third quartile of the changes.
  double p75_call = 0;
  // Mean over the changes and over their first kEarlyCalls calls. Trials are not counted.
  double early_regret = 0;
};
// Number of the first calls of a new size that early_regret covers.
inline constexpr int kEarlyCalls = 25;

// Calls of `from` bytes become calls of `to` bytes; only the ratio matters.
struct SizeChange {
  uint64_t from = 1;
  uint64_t to = 2;
};

// Judges every key of a line, if the line has the key of the size from which it changes. The former key was
// searched for kProbingCalls calls, and the new size was never called. In the ways with the signal, the
// table's entry for the new size exists before the first call. In the other ways, the first call is the
// library's own choice, and the entry holds from the second call on, or from call kEarlyCalls on if it needs
// a new table version. There is one result for each way.
std::vector<GrowthResult> JudgeGrowth(const Policy& policy, const std::vector<KeyLine>& lines,
                                      const SizeChange& change, uint64_t seed);

// The page as Markdown.
std::string FormatScenarios(const Policy& policy, const std::vector<SweptKey>& keys);

}  // namespace dynamiccl::agents
