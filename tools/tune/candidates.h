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

enum class Framework { kDdp, kFsdp2, kDeepSpeed, kMegatron, kTrainer, kOther };
// "DDP", "FSDP2", "DeepSpeed", "Megatron-LM", "the ZeRO trainer" or "no framework that can be set".
const char* Name(Framework framework);
// Returns the framework that the reports name. They are written by the hook, a module that Python loads at
// its start (plugin/startup). If ranks differ, the lowest rank that uses a framework counts.
Framework FrameworkOf(const std::vector<HookReport>& reports);

// One way to run the job. A candidate without values and config is the job as it is.
struct Candidate {
  FrameworkValues values;
  // A setting of `dynamiccl ab`, or bounds on the channels (tools/ab/rule_settings.h). Empty: NCCL's choice.
  std::string config;
  // Holds what the candidate costs apart from time, for example memory. Empty if it costs nothing.
  std::string remark;
  // Predicted step time divided by that of the unchanged job. For settings it comes from the simulator. For
  // settings combined with a config it is the product of the ratios that both had alone. Nothing where no
  // prediction was made.
  std::optional<double> predicted = std::nullopt;
  // The reason why the job is not started with this candidate. Empty if it is started.
  std::string not_tried = {};

  bool IsUnchanged() const { return values.empty() && config.empty(); }
  // Returns for example "bucket_cap_mb=100, ring/simple/1", or "default" for the job as it is.
  std::string Name() const;
};

struct CandidateList {
  // `framework` has settings of the framework, which run with NCCL's choice, and a bound on the channels,
  // which cannot take turns with others within a start. `configs` has configs of NCCL, which run with the
  // unchanged framework. In both lists the candidates that most likely win come first.
  std::vector<Candidate> framework;
  std::vector<Candidate> configs;
  // Candidates with Candidate::not_tried.
  std::vector<Candidate> not_tried;
  // Each sentence names something that is not tried, and says why.
  std::vector<std::string> left_out;
};

// Returns the candidates for a job. `base` is the run in which the unchanged job was watched.
CandidateList CandidatesFor(const WatchedRun& base);
// Returns a sentence if the step that was found in a run with the candidate is not a step of the job: it does
// not sum about as many bytes of gradients as a step of the unchanged job. This happens only if the program
// does not mark its steps, and calls of one step repeat. Else returns an empty text.
std::string WhyNotComparable(const Candidate& candidate, const RecordedStep& step, const RecordedStep& base);
// Drops the last candidates of the longer list until both lists together have at most `most`.
void KeepLikeliest(size_t most, CandidateList& list);
// Reads the candidate that a user names: settings and at most one config, separated by commas, for example
// "bucket_cap_mb=100,ring/simple/1". An error says which part is wrong.
Result<Candidate> CandidateNamed(const std::string& text);
// Returns a candidate with the settings of `framework` and the config of `config`.
Candidate Combined(const Candidate& framework, const Candidate& config);

}  // namespace dynamiccl
