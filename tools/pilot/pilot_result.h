// SPDX-License-Identifier: Apache-2.0
// The result of a pilot: as text, as JSON, and as one HTML file to keep or send. docs/pilot.md describes
// pilots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/ab/turn_comparison.h"
#include "tools/record/recorded_launch.h"
#include "tools/report/json_output.h"
#include "tools/report/report.h"

namespace dynamiccl {

// kFaster and kSlower: the whole interval lies on one side of 1. kNothing: in the search no config looked
// faster than NCCL's choice. kVoid: nothing could be compared, or there were too few rounds for an interval.
enum class PilotVerdict { kFaster, kSlower, kNoDifference, kNothing, kVoid };

// Everything that a pilot found.
struct PilotResult {
  // The job's command line, quoted.
  std::string command;
  std::string machine;
  RecordedLaunch observed;
  std::string trace;
  // Nanoseconds from the first to the last recorded call of the unchanged job; 0: not known.
  int64_t calls_ns = 0;
  // One comparison for each start of the job during the search: the configs that took turns in this start,
  // compared with NCCL's choice.
  std::vector<TurnComparison> searched;
  // Names what was compared with NCCL's choice: "policy p.dcpolicy", "rules r.toml", or settings of
  // `dynamiccl ab` that the search found. Empty if nothing was compared.
  std::string ours;
  // The comparison of NCCL's choice with `ours`, over `starts` starts of the job that the search did not use.
  std::optional<TurnComparison> decided;
  size_t starts = 0;
  // Path of the rules for a faster setting that the search found; empty if it found none.
  std::string rules;
  // The reason why nothing could be compared; empty if something was.
  std::string why_not;
  // Each sentence names a part of the search that did not run, and says why.
  std::vector<std::string> notes;

  PilotVerdict Verdict() const;
};

// The result for people, a few lines.
std::string Describe(const PilotResult& result);
// Writes the result as JSON, schema 2.
Json ToJson(const PilotResult& result);
// One HTML file; `trace` is the trace of the observed run.
std::string RenderPilot(const PilotResult& result, const NamedTrace& trace);

}  // namespace dynamiccl
