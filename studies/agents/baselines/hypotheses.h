// SPDX-License-Identifier: Apache-2.0
// Common beliefs about collectives in sharded training, tested on sweeps. On each topology a belief is true
// or false, with an interval, or the page tells what is missing to decide.
#pragma once

#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "agents/evaluation/regret.h"
#include "src/base/statistics.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

// The result of a test. kLevel means that the interval contains 0.
enum class Verdict { kTrue, kFalse, kLevel, kCannotTell };
// The verdict's name on the page.
const char* Name(Verdict verdict);

// A belief that some configurations are the fastest for some calls.
struct ConfigClaim {
  std::string name;
  std::vector<Collective> collectives;
  // The claim covers calls from `least_bytes` to `most_bytes`, both included.
  uint64_t least_bytes = 0;
  uint64_t most_bytes = UINT64_MAX;
  // True for the configurations that the claim favours.
  bool (*claimed)(const CollectiveConfig& config) = nullptr;
};
// The claims that are tested.
const std::vector<ConfigClaim>& ConfigClaims();

// One claim on one topology: the best claimed configuration compared with the best of the others.
struct ClaimResult {
  std::string claim;
  std::string topology;
  size_t keys = 0;
  // Number of keys for which the claimed configuration is faster.
  size_t wins = 0;
  // Mean over keys of ln(time of the others / time of the claimed): 0.1 means about 10 % faster.
  double advantage = 0;
  // The 95 % interval of the advantage, from the spread of the repeats.
  ConfidenceInterval interval;
  // The same mean, with the library's own choice in place of the other configurations.
  double against_default = 0;
  Verdict verdict = Verdict::kCannotTell;
};

// Both sides are picked on the even repeats and timed on the odd ones. Keys that lack a side are left out.
// The verdict is kCannotTell if no key remains, or if the repeats have no spread (published tables of single
// numbers).
ClaimResult JudgeClaim(const ConfigClaim& claim, const std::string& topology,
                       const std::vector<SweptKey>& keys);

// A page with all claims as Markdown. `structure_json` is the output of `dynamiccl-lab-agents structure
// --json`, for the belief that the mix of calls reveals the stage; it may be empty. kCorrupt if it is
// something else.
Result<std::string> FormatHypotheses(const std::vector<SweptKey>& keys, const std::string& structure_json);

}  // namespace dynamiccl::agents
