// SPDX-License-Identifier: Apache-2.0
// What is often said of collectives in sharded training, held against sweeps: true or false on each topology,
// with an interval, or what is missing to tell.
#pragma once

#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "agents/evaluation/regret.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

enum class Verdict { kTrue, kFalse, kLevel, kCannotTell };
const char* Name(Verdict verdict);

// A statement about which configs are the fastest where.
struct ConfigClaim {
  std::string name;
  std::vector<Collective> collectives;
  uint64_t least_bytes = 0;
  uint64_t most_bytes = UINT64_MAX;
  bool (*claimed)(const CollectiveConfig& config) = nullptr;
};
const std::vector<ConfigClaim>& ConfigClaims();

// Of one claim on one topology: the best claimed config beside the best of the others.
struct ClaimResult {
  std::string claim;
  std::string topology;
  size_t keys = 0;
  size_t wins = 0;       // keys where the claimed config is the faster one
  double advantage = 0;  // mean over keys of ln(time of the others / time of the claimed): 0.1 is 10 % faster
  Interval interval;     // 95 %, from the spread of the repeats
  double against_default = 0;  // the same, the library's own choice instead of the others
  Verdict verdict = Verdict::kCannotTell;
};

// Both sides are picked on the even repeats and timed on the odd ones. Keys that lack either side are left
// out; without any, or without spread (published tables of one number), the data cannot tell. kLevel: the
// interval holds 0.
ClaimResult JudgeClaim(const ConfigClaim& claim, const std::string& topology,
                       const std::vector<SweptKey>& keys);

// A page of all of them as Markdown. `structure_json`: what `dynamiccl-agents structure --json` wrote, for
// what the mix of calls tells about the stage; may be empty.
Result<std::string> FormatHypotheses(const std::vector<SweptKey>& keys, const std::string& structure_json);

}  // namespace dynamiccl::agents
