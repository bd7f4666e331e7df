// SPDX-License-Identifier: Apache-2.0
// What a pilot found: as text, as JSON, and as one HTML file to keep or send.
#pragma once

#include <string>
#include <vector>

#include "tools/record/recorded_launch.h"
#include "tools/report/json_output.h"
#include "tools/report/report.h"

namespace dynamiccl {

// One round: the same program by default, with ours, by default again. Milliseconds, as StepPace.
struct PilotRound {
  double default_ms = 0;
  double ours_ms = 0;
  double default_again_ms = 0;
};

// Above this difference between default and default the machine was not quiet enough to say anything.
inline constexpr double kMaxNoise = 0.01;

enum class PilotVerdict { kFaster, kSlower, kEqual, kVoid };

struct PilotResult {
  std::string command;  // of the job, quoted
  std::string machine;
  RecordedLaunch observed;
  std::string trace;
  bool steps_marked = false;
  std::string ours;  // "policy p.dcpolicy", "rules found by forcing each config"
  std::vector<PilotRound> rounds;
  Json headroom;                 // of `dynamiccl replay --compare --json`; null without
  std::string headroom_missing;  // why

  Timing DefaultTiming() const;  // both runs of each round
  Timing OursTiming() const;
  // |first default / second default - 1|, of the medians.
  double Noise() const;
  PilotVerdict Verdict() const;
};

std::string Describe(const PilotResult& result);
// "schema" 1.
Json ToJson(const PilotResult& result);
std::string RenderPilot(const PilotResult& result, const NamedTrace& trace);

}  // namespace dynamiccl
