// SPDX-License-Identifier: Apache-2.0
// A tune tries settings of the framework that the job uses, and configs of NCCL for its collectives.
// docs/tune.md lists them. None changes what the job computes beyond the order of sums.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/tune/framework_settings.h"
#include "tools/tune/watched_run.h"

namespace dynamiccl {

enum class Framework { kDdp, kFsdp2, kOther };
// "DDP", "FSDP2" or "no framework that can be set".
const char* Name(Framework framework);
// Returns the framework that the hook saw on the lowest rank that has one.
Framework FrameworkOf(const std::vector<HookReport>& reports);

// One way to run the job. Without values and config it is the job as it is.
struct Candidate {
  FrameworkValues values;
  // A setting of `dynamiccl ab` (tools/ab/rule_settings.h); empty: NCCL's choice.
  std::string config;
  // Says what the candidate costs beside time, for example memory. Empty if it costs nothing.
  std::string remark;
  // Predicted step as a share of the job's own: of settings by the simulator, of settings with a config from
  // what each took alone. Nothing where it is not known.
  std::optional<double> predicted = std::nullopt;
  // Says why no start is spent on it. Empty if one is.
  std::string not_tried = {};

  // Returns for example "bucket_cap_mb=100, ring/simple/1", or "default" for the job as it is.
  std::string Name() const;
};

struct CandidateList {
  // Settings of the framework with NCCL's choice, and configs of NCCL with the framework's own settings. The
  // first of each are the likeliest to win.
  std::vector<Candidate> framework;
  std::vector<Candidate> configs;
  // Candidates with Candidate::not_tried.
  std::vector<Candidate> not_tried;
  // Each sentence says what is not tried, and why.
  std::vector<std::string> left_out;
};

// Returns the candidates for a job that ran as `base` shows.
CandidateList CandidatesFor(const WatchedRun& base);
// Drops the last candidates of the longer list until at most `most` remain in both.
void KeepLikeliest(size_t most, CandidateList& list);
// Reads the candidate that a user names: settings and at most one config, separated by commas, for example
// "bucket_cap_mb=100,ring/simple/1". An error says which part is wrong.
Result<Candidate> CandidateNamed(const std::string& text);
// Returns the candidate with the framework's settings of one and the config of the other.
Candidate Combined(const Candidate& framework, const Candidate& config);

}  // namespace dynamiccl
