// SPDX-License-Identifier: Apache-2.0
// The effects that settings had on the steps of a job in which they took turns. `dynamiccl train` learns from
// these effects.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/ab/turn_comparison.h"
#include "traces/format/measurement.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Returns kInvalidArgument unless `first`, the first setting of a comparison, leaves all calls to NCCL.
// Effects are relative to NCCL's choice. `has_policy`: a policy decides the calls that no rule is about.
Status CheckIsNcclsChoice(const std::string& first, bool has_policy);

// The job whose settings were compared.
struct ComparedJob {
  // The settings as the user wrote them, in the order of the comparison.
  std::vector<std::string> settings;
  // The recorded calls of one rank.
  const SectionCalls* calls = nullptr;
  // The fabric. Its links may be unknown (zero).
  MeasurementContext fabric;
  // A policy decided the calls that no rule is about.
  bool has_policy = false;
};

// The effects, and how many settings are not among them. A setting is left out if it gives the job's calls no
// config or several, if a policy decides some of the calls under it, or if it had too few rounds.
struct TurnEffects {
  MeasurementFile file;
  size_t left_out = 0;
};

// Returns the effect of each setting that forces one config, on the calls that its rules match. Calls have
// the role and phase that the job's policy recognised, if all of them have the same. Slowness and share are
// known if calls with NCCL's choice were timed (DYNAMICCL_TIMES). Returns the error of CheckIsNcclsChoice, or
// an error if a text is no setting.
Result<TurnEffects> EffectsOfTurns(const TurnComparison& comparison, const ComparedJob& job);

}  // namespace dynamiccl
