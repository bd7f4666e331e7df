// SPDX-License-Identifier: Apache-2.0
// The result of a pilot: as text, as JSON, and as one HTML file to keep or send. docs/pilot.md describes
// pilots.
#pragma once

#include <string>
#include <vector>

#include "tools/record/recorded_launch.h"
#include "tools/report/json_output.h"
#include "tools/report/report.h"

namespace dynamiccl {

// One round: the same program by default, with ours, and by default again. Milliseconds, as StepPace.
struct PilotRound {
  double default_ms = 0;
  double ours_ms = 0;
  double default_again_ms = 0;
};

// Largest share by which default may differ from default. Above it the machine was not quiet enough for any
// statement.
inline constexpr double kMaxNoise = 0.01;

// kVoid: the machine was too noisy, or nothing was compared.
enum class PilotVerdict { kFaster, kSlower, kEqual, kVoid };

// Everything that a pilot found.
struct PilotResult {
  // The job's command line, quoted.
  std::string command;
  std::string machine;
  RecordedLaunch observed;
  std::string trace;
  bool steps_marked = false;
  // Description of "ours": "policy p.dcpolicy" or "rules found by forcing each config".
  std::string ours;
  std::vector<PilotRound> rounds;
  // Where rules that the replay found, but that made the job slower, were moved; empty where none were.
  std::string put_aside;
  // Output of `dynamiccl replay --compare --json`; null without it.
  Json headroom;
  // Why `headroom` is null; empty where it is not.
  std::string headroom_missing;

  // Times of both default runs of each round.
  Timing DefaultTiming() const;
  Timing OursTiming() const;
  // |first default / second default - 1|, of the medians.
  double Noise() const;
  // Void if the noise is above kMaxNoise, else equal unless the quartile ranges are separate.
  PilotVerdict Verdict() const;
};

// Moves the rules that the replay found at `rules` to `aside`, if the rounds show that they make the job
// slower: nobody should use them for a result. Does nothing otherwise. Fails if the file cannot be moved.
Status PutAsideSlowerRules(const std::string& rules, const std::string& aside, PilotResult& result);

// The result for people, a few lines.
std::string Describe(const PilotResult& result);
// Writes the result as JSON, schema 1.
Json ToJson(const PilotResult& result);
// One HTML file; `trace` is the trace of the observed run.
std::string RenderPilot(const PilotResult& result, const NamedTrace& trace);

}  // namespace dynamiccl
